"""The body force of Guo, Zheng & Shi (2002), Phys. Rev. E 65, 046308, for every collision operator.

The source of the force F is S_q = w_q [3 (c_q - u) . F + 9 (c_q . u) (c_q . F)], with the velocity u shifted by half the
force of a step (`moments`). With n = g + S / 2 - g_eq, which carries neither mass nor momentum, a collision that relaxes
with the operator L is g' = g + S - L n: for BGK the source enters with 1 - omega / 2, and every moment of it with its
own rate (Guo & Zheng 2008, Int. J. Mod. Phys. C 19, 585). All operators of this package are written in that way.

With v = 3 u a pair of opposite directions has w (c.v c.(3F) - v.F) as the even part and w c.(3F) as the odd part of S.
"""
