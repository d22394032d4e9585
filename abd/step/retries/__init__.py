"""How a (sub)step that fails is taken again, in pieces and in parts, and worlds by lengths of their own."""
