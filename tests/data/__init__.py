"""The data floor; a package, so that its conftest.py and the one above have different names."""
