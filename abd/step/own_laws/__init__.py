"""Laws that pairs of bodies have for themselves: where they start, where friction holds, and how they stiffen."""
