"""Shapes and dtypes of results without computing them."""
