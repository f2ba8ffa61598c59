"""Derivatives of typed functions: from an IR function to the IR function of its gradient."""
