"""What joints are made of below their types: measured and linear rows of one joint, parameters, rows that users wrote."""
