"""The search on a device: SFTs uploaded once, F-statistics and Hough maps by kernels, and only
lists of candidates come back.
"""
