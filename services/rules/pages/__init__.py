"""A rule set as a page for people, in English and in French."""
