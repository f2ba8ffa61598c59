"""What a kernel costs, before it runs."""
