"""Whether numbers are chance: statistics over what was drawn. Nothing here draws."""
