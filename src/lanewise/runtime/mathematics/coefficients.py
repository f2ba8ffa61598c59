"""Coefficients and constants of the functions of mathematics.

The polynomials are minimax fits by Remez exchange on 900 Chebyshev nodes with 50
digits, weighted for relative errors, their coefficients rounded to the format: hexadecimal numbers,
lowest power first, for float32 and for float64.
"""

from __future__ import annotations

from typing import Final


def _numbers(text: str) -> tuple[float, ...]:
    return tuple(float.fromhex(word) for word in text.split())


# (e^r - 1 - r) / r^2
EXP: Final = {
    "float": _numbers("1p-1 1.5554bp-3 1.555486p-5 1.122832p-7 1.6d99b8p-10"),
    "double": _numbers(
        "1.0000000000005p-1 1.555555555555cp-3 1.55555555520c9p-5 1.111111110e6cep-7 "
        "1.6c16c17f4366ap-10 1.a01a01b5defedp-13 1.a019a65fe57cep-16 1.71dde9eea0b73p-19 "
        "1.28a2d2f250f28p-22 1.af76d923d922ep-26"
    ),
}
# (2^r - 1) / r
EXP2: Final = {
    "float": _numbers("1.62e43p-1 1.ebfbep-3 1.c6af6cp-5 1.3b29e4p-7 1.5f08a2p-10 1.446c7ap-13"),
    "double": _numbers(
        "1.62e42fefa39efp-1 1.ebfbdff82c58fp-3 1.c6b08d704a0c6p-5 1.3b2ab6fba4e7dp-7 "
        "1.5d87fe78a3f9ap-10 1.430912f86a0dep-13 1.ffcbfc6da7c4fp-17 1.62c0224949f61p-20 "
        "1.b524ebcf47597p-24 1.e4cef6989515ap-28 1.e9ec22f1651dp-32 1.c4c8caf18536fp-36"
    ),
}
# (sin r - r) / r^3, of r^2
SIN: Final = {
    "float": _numbers("-1.555546p-3 1.110796p-7 -1.995cc2p-13"),
    "double": _numbers(
        "-1.5555555555555p-3 1.111111111110cp-7 -1.a01a01a018d3bp-13 1.71de3a536232ep-19 "
        "-1.ae6452c617912p-26 1.6120ac6f473b6p-33 -1.aab0b1a5813c8p-41"
    ),
}
# (cos r - 1 + r^2/2) / r^4, of r^2
COS: Final = {
    "float": _numbers("1.55554cp-5 -1.6c0ce8p-10 1.9a192p-16"),
    "double": _numbers(
        "1.5555555555555p-5 -1.6c16c16c16c14p-10 1.a01a01a01963cp-16 -1.27e4fb767eae9p-22 "
        "1.1eed8d287f728p-29 -1.9393c3076b8aep-37 1.aaffb808e41acp-45"
    ),
}
# (tan r - r) / r^3 to pi/4, of r^2
TAN: Final = {
    "float": _numbers("1.5554eep-2 1.112c0ep-3 1.b5adap-5 1.8fa9e2p-6 1.9dc2b2p-9 1.331d76p-7"),
    "double": _numbers(
        "1.5555555555538p-2 1.1111111114b25p-3 1.ba1ba1b676bf5p-5 1.664f49589e0cep-6 "
        "1.226e19afb2fa1p-7 1.d6d8529211649p-9 1.7d64971a329b1p-10 1.37b6a4d8bc926p-11 "
        "1.d53457a1d134p-13 1.1915bf5483dcdp-13 -1.859097587da14p-16 "
        "1.6c1fe20b3cccbp-14 -1.6d8f37283b5bp-15 1.593a462f0c54dp-16"
    ),
}
# (atan t - t) / t^3 to tan(pi/8), of t^2
ATAN: Final = {
    "float": _numbers("-1.55554cp-2 1.9992ccp-3 -1.23c86cp-3 1.b2e568p-4 -1.f6567ap-5"),
    "double": _numbers(
        "-1.5555555555555p-2 1.9999999999838p-3 -1.24924924822cp-3 1.c71c71bcaacffp-4 "
        "-1.745d1564f047p-4 1.3b137bb71e49dp-4 -1.110d27c3df47fp-4 1.e17ea5ffd71f9p-5 "
        "-1.abc8768a0652ap-5 1.7207bf31f1a2bp-5 -1.149c9117acfeep-5 1.fb04017d39fcdp-7"
    ),
}
# (asin s - s) / s^3 to 1/2, of s^2
ASIN: Final = {
    "float": _numbers("1.5555b6p-3 1.33067p-4 1.741eeep-5 1.8f5b88p-6 1.57002cp-5"),
    "double": _numbers(
        "1.555555555555ep-3 1.3333333330d94p-4 1.6db6db7045d55p-5 1.f1c71b2eecb93p-6 "
        "1.6e8bcf80ff5ep-6 1.1c4aedf5bf6dep-6 1.ca0987c850298p-7 1.762de517d052ap-7 "
        "1.5dc5413a220a2p-7 1.0bbb6553a7f58p-8 1.55501064d6a47p-6 -1.44b2d0a611692p-6 "
        "1.0581657c9b971p-5"
    ),
}
# (sinh a - a) / a^3 to 1, of a^2
SINH: Final = {
    "float": _numbers("1.555556p-3 1.111136p-7 1.9ffe74p-13 1.7a1afp-19"),
    "double": _numbers(
        "1.5555555555555p-3 1.1111111111111p-7 1.a01a01a019fc6p-13 1.71de3a5573b5fp-19 "
        "1.ae64567456ad4p-26 1.61246adc720fep-33 1.ae757e40f1b8ap-41 1.9a75e5af3a881p-49"
    ),
}
# erf(a) / a - 1 to 1, of a^2
ERF: Final = {
    "float": _numbers(
        "1.06eba8p-3 -1.81273ep-2 1.ce2d1ep-4 -1.b7fb86p-6 1.54186cp-8 -1.a479d8p-11 1.4ac182p-14"
    ),
    "double": _numbers(
        "1.06eba8214db69p-3 -1.812746b0379e7p-2 1.ce2f21a042bdep-4 -1.b82ce312889bep-6 "
        "1.565bcd0e650c7p-8 -1.c02db3feed3a8p-11 1.f9a326c26f346p-14 -1.f4d2561fe333bp-17 "
        "1.b9e650e2c3bbdp-20 -1.5f6d950c1641fp-23 1.fc4378f46ee11p-27 "
        "-1.4e6107be727efp-30 1.7f09a368880d2p-34 -1.29bec5bd5f3a4p-38"
    ),
}
# (x + K) e^(x^2) erfc x, of u = 1 - 2 K / (x + K)
G: Final = {
    "float": _numbers(
        "1.058672p0 -1.5fd386p-1 1.1e2ddcp-2 -1.2a8ad6p-5 -1.6055dep-6 1.a94658p-8 "
        "1.8f9918p-9 -1.cc9c7p-11 -1.192fc6p-11 1.a62e8ep-14"
    ),
    "double": _numbers(
        "1.1649466cd0bf1p0 -1.e02749166d56fp-1 1.6362dd280195cp-1 -1.bdb3c1808b2abp-2 "
        "1.ce500ceb5be25p-3 -1.7a232e1d2aae8p-4 1.b27b2747fbd49p-6 -1.a06c1e93d28d3p-9 "
        "-1.5630dec64170fp-10 1.769ecf5128322p-11 -1.60d7d9be944f7p-15 "
        "-1.39a2d6ab7a23ap-14 1.38d944bcf1843p-16 1.e60b8b721b83fp-18 "
        "-1.c7470e8ab11e9p-19 -1.a9ad17bb3f023p-21 1.27924779d9cb8p-21 "
        "1.ddd8779de731ap-24 -1.668ed26e7dd05p-24 -1.34c189546741bp-26 "
        "1.3602bfa653574p-27 1.198c8239cfa77p-29"
    ),
}
# float32: (log(1 + f) - f + f^2/2) / f^3; float64: (2 atanh s / s - 2) / s^2, of s^2
LOG: Final = {
    "float": _numbers(
        "1.55554ap-2 -1.00022p-2 1.99a596p-3 -1.54788cp-3 1.226e42p-3 -1.0ce074p-3 "
        "1.07d12ep-3 -1.41eec6p-4"
    ),
    "double": _numbers(
        "1.5555555555581p-1 1.9999999984875p-2 1.2492493e6dd1dp-2 1.c71c548e45cc7p-3 "
        "1.7465c75129e66p-3 1.39acce71b5b2cp-3 1.2e9d91f28990ep-3"
    ),
}
# (2 / ln 2) (atanh s / s - 1 - s^2/3) / s^4, of s^2
LP: Final = {
    "double": _numbers(
        "1.2776c50ef9bfep-1 1.a61762a7ae234p-2 1.484b13d760b0bp-2 1.0c9a84e500319p-2 "
        "1.c68f16a2de2cdp-3 1.8a03096a9cd69p-3 1.598186c0bc339p-3 1.5db9869dc279fp-3"
    ),
}
# (2 / ln 2) atanh s / s, of s^2
LQ: Final = {
    "double": _numbers(
        "1.71547652b825p1 1.ec709dc53dd22p-1 1.2776c291bb7dap-1 1.a61a2fea442bp-2 "
        "1.47952a5c553e6p-2 1.21b33f50485a9p-2"
    ),
}
# (2^r - 1) / r, for float32
EQ: Final = {
    "double": _numbers(
        "1.62e42fef96197p-1 1.ebfbe04600ed3p-3 1.c6b08dc5997e5p-5 1.3b2a1b651df76p-7 "
        "1.5d874cd45bc29p-10 1.444009ab4c39fp-13 1.00dc134cd860ep-16"
    ),
}
# ((1 - e)^(-1/3) - 1) / e to 0.11
CBRT: Final = {
    "float": _numbers("1.555364p-2 1.ca127ap-3 1.665a4cp-3"),
    "double": _numbers("1.55536444607bcp-2 1.ca12797ba65abp-3 1.665a4c3f41b3p-3"),
}
# constants and, with an L, what rounding them left
CONSTANTS: Final = {
    "float": {
        "LN2H": float.fromhex("1.62e4p-1"),
        "LN2L": float.fromhex("1.7f7d1cp-20"),
        "LOG2E": float.fromhex("1.715476p0"),
        "LOG2EL": float.fromhex("1.4ae0cp-26"),
        "TWOPI": float.fromhex("1.45f306p-1"),
        "TPI4H": float.fromhex("1.2d97c8p1"),
        "TPI4L": float.fromhex("-1.99bc5cp-28"),
        "P0": float.fromhex("1.921fb6p0"),
        "P1": float.fromhex("-1.777a5cp-25"),
        "P2": float.fromhex("-1.ee59dap-50"),
        "P3": float.fromhex("1.98a2ep-77"),
        "PI4H": float.fromhex("1.921fb6p-1"),
        "PI4L": float.fromhex("-1.777a5cp-26"),
        "PI2H": float.fromhex("1.921fb6p0"),
        "PI2L": float.fromhex("-1.777a5cp-25"),
        "PIH": float.fromhex("1.921fb6p1"),
        "PIL": float.fromhex("-1.777a5cp-24"),
        "LN2F": float.fromhex("1.62e43p-1"),
        "LOG10E": float.fromhex("1.bcb7b2p-2"),
        "LOG10EL": float.fromhex("-1.5b235ep-27"),
        "LOG10_2H": float.fromhex("1.344p-2"),
        "LOG10_2L": float.fromhex("1.3509f8p-18"),
    },
    "double": {
        "LN2H": float.fromhex("1.62e42fefa4p-1"),
        "LN2L": float.fromhex("-1.8432a1b0e2634p-43"),
        "LOG2E": float.fromhex("1.71547652b82fep0"),
        "LOG2EL": float.fromhex("1.777d0ffda0d24p-56"),
        "TWOPI": float.fromhex("1.45f306dc9c883p-1"),
        "TPI4H": float.fromhex("1.2d97c7f3321d2p1"),
        "TPI4L": float.fromhex("1.a79394c9e8a0ap-54"),
        "P0": float.fromhex("1.921fb54442d18p0"),
        "P1": float.fromhex("1.1a62633145c07p-54"),
        "P2": float.fromhex("-1.f1976b7ed8fbcp-110"),
        "P3": float.fromhex("1.5p-164"),
        "PI4H": float.fromhex("1.921fb54442d18p-1"),
        "PI4L": float.fromhex("1.1a62633145c07p-55"),
        "PI2H": float.fromhex("1.921fb54442d18p0"),
        "PI2L": float.fromhex("1.1a62633145c07p-54"),
        "PIH": float.fromhex("1.921fb54442d18p1"),
        "PIL": float.fromhex("1.1a62633145c07p-53"),
        "LN2F": float.fromhex("1.62e42fefa39efp-1"),
        "TL2E3": float.fromhex("1.ec709dc3a03fdp-1"),
        "TL2E3L": float.fromhex("1.d27f05548af0cp-55"),
        "TL2E": float.fromhex("1.71547652b82fep1"),
        "TL2EL": float.fromhex("1.777d0ffda0d24p-55"),
        "LOG10E": float.fromhex("1.bcb7b1526e50ep-2"),
        "LOG10EL": float.fromhex("1.95355baaafad3p-57"),
        "LOG10_2H": float.fromhex("1.34413509f8p-2"),
        "LOG10_2L": float.fromhex("-1.80433b83b532ap-44"),
    },
}
# 2 / pi behind its point, in words of 64 bits
TWO_OVER_PI: Final = (
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e0"
    "06492eea09d1921cfe1deb1cb129a73ee88235f52ebb4484e99c7026b45f7e413991d639835339f4"
    "9c845f8bbdf9283b1ff897ffde05980fef2f118b5a0a6d1f6d367ecf27cb09b74f463f669e5fea2d"
    "7527bac7ebe5f17b3d0739f78a5292ea6bfb5fb11f8d5d0856033046fc7b6babf0cfbc209af4361d"
)
