"""The commands of `lanewise waves`: their options, what the texts of these mean, and what each
command does.
"""
