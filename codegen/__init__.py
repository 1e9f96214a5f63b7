"""The generator: schemas in, `generated/` out. Run as `python -m codegen`; not installed, imports nothing of ours."""
