"""Image data: which sets there are, where they lie, and how batches are made of them."""
