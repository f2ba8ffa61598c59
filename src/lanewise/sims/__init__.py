"""Simulations that people use as they are, each written on the public interface of lanewise alone."""
