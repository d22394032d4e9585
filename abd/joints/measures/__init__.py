"""What joints are made of below their types: measured and linear rows of one joint, motions, rows that users wrote."""
