"""The commands of `lanewise waves`.

Their options, what the texts of these mean, and what each command does.
"""
