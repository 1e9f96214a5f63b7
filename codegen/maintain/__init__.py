"""The commands: to pull a schema, to watch the draft, to compare two revisions, to generate everything anew."""
