"""The services of Sabot. Start with services/README.md: the path of one bet."""
