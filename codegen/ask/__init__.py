"""What nobody has decided yet, as questions and as entries of an overlay that a person fills in."""
