"""Building blocks of joint types: measures, linear rows, combined rows, motions and custom rows."""
