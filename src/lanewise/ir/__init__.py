"""The intermediate representation: nodes, printing, checking, meaning."""
