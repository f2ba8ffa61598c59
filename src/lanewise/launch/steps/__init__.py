"""Steps of a time loop: which tasks each has, what runs them, and how many are whole."""
