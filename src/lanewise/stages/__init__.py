"""The stages of the pipeline: which passes a plan asks for, in which order, on which kind of device."""
