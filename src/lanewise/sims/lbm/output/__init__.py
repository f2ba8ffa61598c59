"""What a flow simulation writes for other programs: fields as HDF5, forces as CSV."""
