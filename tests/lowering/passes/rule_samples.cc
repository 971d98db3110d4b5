#include "tests/lowering/passes/rule_samples.h"

namespace lazuli::lowering {
namespace {

constexpr RuleSample kSamples[] = {
    // --- arithmetic
    {"elementwise-of-broadcasts",
     R"(x = f32[3] parameter(0)
        y = f32[3] parameter(1)
        bx = f32[3,4] broadcast(x), dimensions={0}
        by = f32[3,4] broadcast(y), dimensions={0}
        ROOT r = f32[3,4] add(bx, by))",
     R"(x = f32[3] parameter(0)
        y = f32[3] parameter(1)
        bx = f32[3,3] broadcast(x), dimensions={0}
        by = f32[3,3] broadcast(y), dimensions={1}
        ROOT r = f32[3,3] add(bx, by))"},
    {"elementwise-of-broadcasts",
     R"(p = pred[] parameter(0)
        x = f32[] parameter(1)
        y = f32[] parameter(2)
        bx = f32[4] broadcast(x), dimensions={}
        by = f32[4] broadcast(y), dimensions={}
        ROOT r = f32[4] select(p, bx, by))",
     R"(p = pred[4] parameter(0)
        x = f32[] parameter(1)
        y = f32[] parameter(2)
        bx = f32[4] broadcast(x), dimensions={}
        by = f32[4] broadcast(y), dimensions={}
        ROOT r = f32[4] select(p, bx, by))"},
    {"constant-right",
     R"(x = f32[] parameter(0)
        c = f32[] constant(2)
        ROOT r = f32[] add(c, x))",
     R"(x = f32[] parameter(0)
        c = f32[] constant(2)
        ROOT r = f32[] subtract(c, x))"},
    {"add-zero",
     R"(x = f32[4] parameter(0)
        c = f32[] constant(-0.0)
        z = f32[4] broadcast(c), dimensions={}
        ROOT r = f32[4] add(x, z))",
     R"(x = f32[4] parameter(0)
        c = f32[] constant(0)
        z = f32[4] broadcast(c), dimensions={}
        ROOT r = f32[4] add(x, z))"},
    {"add-zero",
     R"(x = s32[] parameter(0)
        c = s32[] constant(0)
        ROOT r = s32[] add(c, x))",
     R"(x = s32[] parameter(0)
        c = s32[] constant(1)
        ROOT r = s32[] add(c, x))"},
    {"add-negate",
     R"(x = f32[4] parameter(0)
        y = f32[4] parameter(1)
        n = f32[4] negate(y)
        ROOT r = f32[4] add(x, n))",
     R"(x = f32[4] parameter(0)
        y = f32[4] parameter(1)
        n = f32[4] negate(y)
        ROOT r = f32[4] multiply(x, n))"},
    {"subtract-zero",
     R"(x = f32[4] parameter(0)
        c = f32[] constant(0)
        z = f32[4] broadcast(c), dimensions={}
        ROOT r = f32[4] subtract(x, z))",
     R"(x = f32[4] parameter(0)
        c = f32[] constant(-0.0)
        z = f32[4] broadcast(c), dimensions={}
        ROOT r = f32[4] subtract(x, z))"},
    {"subtract-negate",
     R"(x = f32[4] parameter(0)
        y = f32[4] parameter(1)
        n = f32[4] negate(y)
        ROOT r = f32[4] subtract(x, n))",
     R"(x = f32[4] parameter(0)
        y = f32[4] parameter(1)
        n = f32[4] negate(x)
        ROOT r = f32[4] subtract(n, y))"},
    {"subtract-self-int",
     R"(x = s32[4] parameter(0)
        ROOT r = s32[4] subtract(x, x))",
     R"(x = f32[4] parameter(0)
        ROOT r = f32[4] subtract(x, x))"},
    {"multiply-one",
     R"(x = f32[4] parameter(0)
        c = f32[] constant(1)
        o = f32[4] broadcast(c), dimensions={}
        ROOT r = f32[4] multiply(o, x))",
     R"(x = f32[4] parameter(0)
        c = f32[4] constant({1, 1, 1, 2})
        ROOT r = f32[4] multiply(c, x))"},
    {"multiply-minus-one",
     R"(x = f32[] parameter(0)
        c = f32[] constant(-1)
        ROOT r = f32[] multiply(x, c))",
     R"(x = f32[] parameter(0)
        c = f32[] constant(-2)
        ROOT r = f32[] multiply(x, c))"},
    {"multiply-zero-int",
     R"(x = s32[4] parameter(0)
        c = s32[4] constant({0, 0, 0, 0})
        ROOT r = s32[4] multiply(x, c))",
     R"(x = f32[4] parameter(0)
        c = f32[4] constant({0, 0, 0, 0})
        ROOT r = f32[4] multiply(x, c))"},
    {"multiply-negates",
     R"(x = f32[4] parameter(0)
        y = f32[4] parameter(1)
        nx = f32[4] negate(x)
        ny = f32[4] negate(y)
        ROOT r = f32[4] multiply(nx, ny))",
     R"(x = f32[4] parameter(0)
        y = f32[4] parameter(1)
        nx = f32[4] negate(x)
        ROOT r = f32[4] multiply(nx, y))"},
    {"associate-constants-int",
     R"(x = s32[] parameter(0)
        c = s32[] constant(3)
        d = s32[] constant(4)
        i = s32[] add(x, c)
        ROOT r = s32[] add(i, d))",
     R"(x = f32[] parameter(0)
        c = f32[] constant(3)
        d = f32[] constant(4)
        i = f32[] add(x, c)
        ROOT r = f32[] add(i, d))"},
    {"divide-one",
     R"(x = f32[] parameter(0)
        c = f32[] constant(1)
        ROOT r = f32[] divide(x, c))",
     R"(x = f32[] parameter(0)
        c = f32[] constant(1)
        ROOT r = f32[] divide(c, x))"},
    {"divide-power-of-two",
     R"(x = f32[64] parameter(0)
        c = f32[] constant(-0.25)
        b = f32[64] broadcast(c), dimensions={}
        ROOT r = f32[64] divide(x, b))",
     R"(x = f32[64] parameter(0)
        c = f32[] constant(3)
        b = f32[64] broadcast(c), dimensions={}
        ROOT r = f32[64] divide(x, b))"},
    {"divide-power-of-two",
     R"(x = f16[8] parameter(0)
        c = f16[] constant(64)
        b = f16[8] broadcast(c), dimensions={}
        ROOT r = f16[8] divide(x, b))",
     R"(x = f32[8] parameter(0)
        c = f32[] constant(1.7014118346046923e+38)
        b = f32[8] broadcast(c), dimensions={}
        ROOT r = f32[8] divide(x, b))"},  // 2^127, whose reciprocal is subnormal
    {"remainder-one-int",
     R"(x = s32[] parameter(0)
        c = s32[] constant(1)
        ROOT r = s32[] remainder(x, c))",
     R"(x = f32[] parameter(0)
        c = f32[] constant(1)
        ROOT r = f32[] remainder(x, c))"},
    {"negate-negate",
     R"(x = f32[4] parameter(0)
        n = f32[4] negate(x)
        ROOT r = f32[4] negate(n))",
     R"(x = f32[4] parameter(0)
        n = f32[4] abs(x)
        ROOT r = f32[4] negate(n))"},
    {"negate-subtract-int",
     R"(x = s32[4] parameter(0)
        y = s32[4] parameter(1)
        s = s32[4] subtract(x, y)
        ROOT r = s32[4] negate(s))",
     R"(x = f32[4] parameter(0)
        y = f32[4] parameter(1)
        s = f32[4] subtract(x, y)
        ROOT r = f32[4] negate(s))"},
    {"abs-negate",
     R"(x = s32[4] parameter(0)
        n = s32[4] negate(x)
        ROOT r = s32[4] abs(n))",
     R"(x = f32[4] parameter(0)
        n = f32[4] floor(x)
        ROOT r = f32[4] abs(n))"},
    {"idempotent",
     R"(x = f32[8] parameter(0)
        c = f32[8] ceil(x)
        ROOT r = f32[8] floor(c))",
     R"(x = f32[8] parameter(0)
        c = f32[8] abs(x)
        ROOT r = f32[8] floor(c))"},
    {"idempotent",
     R"(x = f32[8] parameter(0)
        c = f32[8] abs(x)
        ROOT r = f32[8] abs(c))",
     R"(x = f32[8] parameter(0)
        c = f32[8] floor(x)
        ROOT r = f32[8] abs(c))"},
    {"extremum-self",
     R"(x = f32[4] parameter(0)
        ROOT r = f32[4] maximum(x, x))",
     R"(x = f32[4] parameter(0)
        y = f32[4] parameter(1)
        ROOT r = f32[4] maximum(x, y))"},
    {"extremum-infinity",
     R"(x = f32[8] parameter(0)
        c = f32[] constant(-inf)
        b = f32[8] broadcast(c), dimensions={}
        ROOT r = f32[8] maximum(x, b))",
     R"(x = f32[8] parameter(0)
        c = f32[] constant(inf)
        b = f32[8] broadcast(c), dimensions={}
        ROOT r = f32[8] maximum(x, b))"},
    {"clamp-unbounded",
     R"(x = f32[8] parameter(0)
        l = f32[] constant(-inf)
        h = f32[] constant(inf)
        ROOT r = f32[8] clamp(l, x, h))",
     R"(x = f32[8] parameter(0)
        l = f32[] constant(0)
        h = f32[] constant(inf)
        ROOT r = f32[8] clamp(l, x, h))"},
    {"shift-zero",
     R"(x = u32[4] parameter(0)
        c = u32[] constant(0)
        b = u32[4] broadcast(c), dimensions={}
        ROOT r = u32[4] shift-right-logical(x, b))",
     R"(x = u32[4] parameter(0)
        c = u32[] constant(1)
        b = u32[4] broadcast(c), dimensions={}
        ROOT r = u32[4] shift-left(x, b))"},

    // --- logic
    {"and-or-self",
     R"(x = s32[4] parameter(0)
        ROOT r = s32[4] or(x, x))",
     R"(x = s32[4] parameter(0)
        ROOT r = s32[4] xor(x, x))"},
    {"and-or-constant",
     R"(x = pred[4] parameter(0)
        c = pred[] constant(true)
        b = pred[4] broadcast(c), dimensions={}
        ROOT r = pred[4] and(b, x))",
     R"(x = s32[4] parameter(0)
        c = s32[] constant(1)
        b = s32[4] broadcast(c), dimensions={}
        ROOT r = s32[4] and(b, x))"},
    {"and-or-constant",
     R"(x = s32[4] parameter(0)
        c = s32[] constant(-1)
        b = s32[4] broadcast(c), dimensions={}
        ROOT r = s32[4] or(x, b))",
     R"(x = u64[] parameter(0)
        c = u64[] constant(18446744073709551614)
        ROOT r = u64[] or(x, c))"},
    {"xor-zero",
     R"(x = u8[4] parameter(0)
        c = u8[4] constant({0, 0, 0, 0})
        ROOT r = u8[4] xor(x, c))",
     R"(x = u8[4] parameter(0)
        c = u8[4] constant({0, 0, 0, 1})
        ROOT r = u8[4] xor(x, c))"},
    {"xor-self",
     R"(x = u8[4] parameter(0)
        ROOT r = u8[4] xor(x, x))",
     R"(x = u8[4] parameter(0)
        ROOT r = u8[4] and(x, x))"},
    {"xor-ones",
     R"(x = pred[4] parameter(0)
        c = pred[] constant(true)
        b = pred[4] broadcast(c), dimensions={}
        ROOT r = pred[4] xor(x, b))",
     R"(x = s32[] parameter(0)
        c = s32[] constant(1)
        ROOT r = s32[] xor(x, c))"},
    {"not-not",
     R"(x = s8[4] parameter(0)
        n = s8[4] not(x)
        ROOT r = s8[4] not(n))",
     R"(x = s8[4] parameter(0)
        n = s8[4] negate(x)
        ROOT r = s8[4] not(n))"},
    {"not-compare",
     R"(x = s32[8] parameter(0)
        y = s32[8] parameter(1)
        c = pred[8] compare(x, y), direction=LT
        ROOT r = pred[8] not(c))",
     R"(x = f32[8] parameter(0)
        y = f32[8] parameter(1)
        c = pred[8] compare(x, y), direction=LT
        ROOT r = pred[8] not(c))"},
    {"compare-constant-left",
     R"(x = f32[8] parameter(0)
        z = f32[] constant(0)
        b = f32[8] broadcast(z), dimensions={}
        ROOT r = pred[8] compare(b, x), direction=LE)",
     R"(x = f32[8] parameter(0)
        z = f32[] constant(0)
        b = f32[8] broadcast(z), dimensions={}
        ROOT r = pred[8] compare(x, b), direction=LE)"},
    {"compare-self",
     R"(x = s32[4] parameter(0)
        ROOT r = pred[4] compare(x, x), direction=GE)",
     R"(x = f32[4] parameter(0)
        ROOT r = pred[4] compare(x, x), direction=EQ)"},
    {"compare-pred",
     R"(x = pred[4] parameter(0)
        c = pred[] constant(false)
        b = pred[4] broadcast(c), dimensions={}
        ROOT r = pred[4] compare(x, b), direction=EQ)",
     R"(x = pred[4] parameter(0)
        c = pred[] constant(false)
        b = pred[4] broadcast(c), dimensions={}
        ROOT r = pred[4] compare(x, b), direction=GT)"},
    {"select-constant",
     R"(x = f32[4] parameter(0)
        y = f32[4] parameter(1)
        p = pred[] constant(false)
        ROOT r = f32[4] select(p, x, y))",
     R"(x = f32[2] parameter(0)
        y = f32[2] parameter(1)
        p = pred[2] constant({1, 0})
        ROOT r = f32[2] select(p, x, y))"},
    {"select-same",
     R"(p = pred[4] parameter(0)
        x = f32[4] parameter(1)
        ROOT r = f32[4] select(p, x, x))",
     R"(p = pred[4] parameter(0)
        x = f32[4] parameter(1)
        y = f32[4] parameter(2)
        ROOT r = f32[4] select(p, x, y))"},
    {"select-not",
     R"(p = pred[4] parameter(0)
        x = f32[4] parameter(1)
        y = f32[4] parameter(2)
        n = pred[4] not(p)
        ROOT r = f32[4] select(n, x, y))",
     R"(p = pred[4] parameter(0)
        q = pred[4] parameter(1)
        n = pred[4] not(p)
        ROOT r = pred[4] select(q, n, p))"},
    {"select-preds",
     R"(p = pred[4] parameter(0)
        t = pred[] constant(true)
        f = pred[] constant(false)
        bt = pred[4] broadcast(t), dimensions={}
        bf = pred[4] broadcast(f), dimensions={}
        ROOT r = pred[4] select(p, bf, bt))",
     R"(p = pred[] parameter(0)
        t = pred[] constant(true)
        f = pred[] constant(false)
        bt = pred[4] broadcast(t), dimensions={}
        bf = pred[4] broadcast(f), dimensions={}
        ROOT r = pred[4] select(p, bt, bf))"},

    // --- conversions
    {"convert-noop",
     R"(x = f32[4] parameter(0)
        ROOT r = f32[4] convert(x))",
     R"(x = f32[4] parameter(0)
        ROOT r = f64[4] convert(x))"},
    {"convert-convert",
     R"(x = s8[4] parameter(0)
        w = s32[4] convert(x)
        ROOT r = s64[4] convert(w))",
     R"(x = s32[4] parameter(0)
        n = s8[4] convert(x)
        ROOT r = s32[4] convert(n))"},
    {"convert-convert",
     R"(x = f32[8] parameter(0)
        w = f64[8] convert(x)
        ROOT r = f32[8] convert(w))",
     R"(x = s32[8] parameter(0)
        w = f32[8] convert(x)
        ROOT r = s32[8] convert(w))"},
    {"convert-convert",
     R"(x = bf16[8] parameter(0)
        w = f32[8] convert(x)
        ROOT r = f64[8] convert(w))",
     R"(x = f64[8] parameter(0)
        w = f32[8] convert(x)
        ROOT r = f64[8] convert(w))"},
    {"convert-convert",
     R"(x = s32[8] parameter(0)
        w = f64[8] convert(x)
        ROOT r = f32[8] convert(w))",
     R"(x = s32[8] parameter(0)
        w = f64[8] convert(x)
        ROOT r = s8[8] convert(w))"},
    {"bitcast-bitcast",
     R"(x = f32[4] parameter(0)
        b = u32[4] bitcast-convert(x)
        ROOT r = f32[4] bitcast-convert(b))",
     R"(x = f32[4] parameter(0)
        b = u32[4] bitcast-convert(x)
        ROOT r = u16[4,2] bitcast-convert(b))"},
    {"part-of-complex",
     R"(x = f32[4] parameter(0)
        y = f32[4] parameter(1)
        z = c64[4] complex(x, y)
        ROOT r = f32[4] imag(z))",
     R"(z = c64[4] parameter(0)
        ROOT r = f32[4] imag(z))"},
    {"complex-of-parts",
     R"(z = c64[4] parameter(0)
        x = f32[4] real(z)
        y = f32[4] imag(z)
        ROOT r = c64[4] complex(x, y))",
     R"(z = c64[4] parameter(0)
        x = f32[4] real(z)
        y = f32[4] imag(z)
        ROOT r = c64[4] complex(y, x))"},

    // --- shapes
    {"shape-noop",
     R"(x = f32[2,3] parameter(0)
        ROOT r = f32[2,3] transpose(x), dimensions={0,1})",
     R"(x = f32[3,3] parameter(0)
        ROOT r = f32[3,3] transpose(x), dimensions={1,0})"},
    {"reshape-reshape",
     R"(x = f32[2,3] parameter(0)
        y = f32[6] reshape(x)
        ROOT r = f32[3,2] reshape(y))",
     R"(x = f32[2,3] parameter(0)
        y = f32[3,2] transpose(x), dimensions={1,0}
        ROOT r = f32[6] reshape(y))"},
    {"reshape-broadcast",
     R"(x = f32[3] parameter(0)
        b = f32[1,3,2] broadcast(x), dimensions={1}
        ROOT r = f32[3,1,2] reshape(b))",
     R"(x = f32[3] parameter(0)
        b = f32[3,2] broadcast(x), dimensions={0}
        ROOT r = f32[6] reshape(b))"},
    {"reshape-broadcast",
     R"(x = f32[] parameter(0)
        b = f32[3,2] broadcast(x), dimensions={}
        ROOT r = f32[6] reshape(b))",
     R"(x = f32[1] parameter(0)
        b = f32[1,3] broadcast(x), dimensions={0}
        ROOT r = f32[3] reshape(b))"},
    {"transpose-transpose",
     R"(x = f32[2,3,4] parameter(0)
        t = f32[4,2,3] transpose(x), dimensions={2,0,1}
        ROOT r = f32[3,2,4] transpose(t), dimensions={2,1,0})",
     R"(x = f32[2,3,4] parameter(0)
        t = f32[2,3,4] reverse(x), dimensions={0}
        ROOT r = f32[4,3,2] transpose(t), dimensions={2,1,0})"},
    {"transpose-of-ones",
     R"(x = f32[1,3,1,2] parameter(0)
        ROOT r = f32[3,1,2,1] transpose(x), dimensions={1,0,3,2})",
     R"(x = f32[1,3,1,2] parameter(0)
        ROOT r = f32[2,1,3,1] transpose(x), dimensions={3,0,1,2})"},
    {"transpose-broadcast",
     R"(x = f32[2,3] parameter(0)
        b = f32[2,3,4] broadcast(x), dimensions={0,1}
        ROOT r = f32[4,2,3] transpose(b), dimensions={2,0,1})",
     R"(x = f32[2,3] parameter(0)
        b = f32[2,3,4] broadcast(x), dimensions={0,1}
        ROOT r = f32[3,4,2] transpose(b), dimensions={1,2,0})"},
    {"broadcast-broadcast",
     R"(x = f32[3] parameter(0)
        b = f32[3,2] broadcast(x), dimensions={0}
        ROOT r = f32[4,3,2] broadcast(b), dimensions={1,2})",
     R"(x = f32[3] parameter(0)
        b = f32[3] reverse(x), dimensions={0}
        ROOT r = f32[4,3] broadcast(b), dimensions={1})"},
    {"reverse-reverse",
     R"(x = f32[2,3] parameter(0)
        a = f32[2,3] reverse(x), dimensions={0,1}
        ROOT r = f32[2,3] reverse(a), dimensions={1,0})",
     R"(x = f32[2,3] parameter(0)
        a = f32[2,3] reverse(x), dimensions={0}
        ROOT r = f32[2,3] reverse(a), dimensions={1})"},
    {"reverse-uniform",
     R"(x = f32[3] parameter(0)
        b = f32[1,2,3] broadcast(x), dimensions={2}
        ROOT r = f32[1,2,3] reverse(b), dimensions={0,1})",
     R"(x = f32[3] parameter(0)
        b = f32[1,2,3] broadcast(x), dimensions={2}
        ROOT r = f32[1,2,3] reverse(b), dimensions={2})"},
    {"iota-single", R"(ROOT r = s32[4,1] iota(), iota_dimension=1)",
     R"(ROOT r = s32[4,1] iota(), iota_dimension=0)"},
    {"dimension-size",
     R"(x = f32[4,7] parameter(0)
        ROOT r = s32[] get-dimension-size(x), dimensions={1})",
     R"(ROOT x = f32[4,7] parameter(0))"},

    // --- slices
    {"slice-noop",
     R"(x = f32[4] parameter(0)
        ROOT r = f32[4] slice(x), slice={[0:4]})",
     R"(x = f32[4] parameter(0)
        ROOT r = f32[3] slice(x), slice={[0:3]})"},
    {"slice-slice",
     R"(x = f32[20] parameter(0)
        s = f32[9] slice(x), slice={[1:19:2]}
        ROOT r = f32[3] slice(s), slice={[2:8:2]})",
     R"(x = f32[20] parameter(0)
        s = f32[20] reverse(x), dimensions={0}
        ROOT r = f32[3] slice(s), slice={[2:8:2]})"},
    {"slice-broadcast",
     R"(x = f32[3] parameter(0)
        b = f32[8,3] broadcast(x), dimensions={1}
        ROOT r = f32[2,3] slice(b), slice={[4:6], [0:3]})",
     R"(x = f32[3] parameter(0)
        b = f32[8,3] broadcast(x), dimensions={1}
        ROOT r = f32[8,2] slice(b), slice={[0:8], [0:2]})"},
    {"slice-concatenate",
     R"(x = f32[3] parameter(0)
        y = f32[4] parameter(1)
        c = f32[7] concatenate(x, y), dimensions={0}
        ROOT r = f32[2] slice(c), slice={[4:6]})",
     R"(x = f32[3] parameter(0)
        y = f32[4] parameter(1)
        c = f32[7] concatenate(x, y), dimensions={0}
        ROOT r = f32[2] slice(c), slice={[2:4]})"},
    {"pad-noop",
     R"(x = f32[3] parameter(0)
        v = f32[] parameter(1)
        ROOT r = f32[3] pad(x, v), padding=0_0)",
     R"(x = f32[3] parameter(0)
        v = f32[] parameter(1)
        ROOT r = f32[3] pad(x, v), padding=1_-1)"},
    {"pad-negative",
     R"(x = f32[5] parameter(0)
        v = f32[] parameter(1)
        ROOT r = f32[2] pad(x, v), padding=-1_-2)",
     R"(x = f32[5] parameter(0)
        v = f32[] parameter(1)
        ROOT r = f32[6] pad(x, v), padding=-1_2)"},
    {"pad-splat",
     R"(v = f32[] parameter(0)
        x = f32[3] broadcast(v), dimensions={}
        ROOT r = f32[9] pad(x, v), padding=1_3_1)",
     R"(v = f32[] parameter(0)
        w = f32[] parameter(1)
        x = f32[3] broadcast(v), dimensions={}
        ROOT r = f32[9] pad(x, w), padding=1_3_1)"},
    {"concatenate-one",
     R"(x = f32[3] parameter(0)
        ROOT r = f32[3] concatenate(x), dimensions={0})",
     R"(x = f32[3] parameter(0)
        ROOT r = f32[6] concatenate(x, x), dimensions={0})"},
    {"concatenate-empty",
     R"(x = f32[3,2] parameter(0)
        y = f32[3,0] parameter(1)
        ROOT r = f32[3,4] concatenate(x, y, x), dimensions={1})",
     R"(x = f32[3,2] parameter(0)
        y = f32[3,1] parameter(1)
        ROOT r = f32[3,3] concatenate(x, y), dimensions={1})"},
    {"concatenate-slices",
     R"(x = f32[5,2] parameter(0)
        a = f32[3,2] slice(x), slice={[0:3], [0:2]}
        b = f32[2,2] slice(x), slice={[3:5], [0:2]}
        ROOT r = f32[5,2] concatenate(a, b), dimensions={0})",
     R"(x = f32[5,2] parameter(0)
        a = f32[3,2] slice(x), slice={[0:3], [0:2]}
        b = f32[2,2] slice(x), slice={[3:5], [0:2]}
        ROOT r = f32[5,2] concatenate(b, a), dimensions={0})"},
    {"dynamic-slice-noop",
     R"(x = f32[4] parameter(0)
        i = s32[] parameter(1)
        ROOT r = f32[4] dynamic-slice(x, i), dynamic_slice_sizes={4})",
     R"(x = f32[4] parameter(0)
        i = s32[] parameter(1)
        ROOT r = f32[3] dynamic-slice(x, i), dynamic_slice_sizes={3})"},
    {"dynamic-slice-constant",
     R"(x = f32[4,4] parameter(0)
        i = s32[] constant(9)
        j = s32[] constant(-1)
        ROOT r = f32[2,3] dynamic-slice(x, i, j), dynamic_slice_sizes={2,3})",
     R"(x = f32[4,4] parameter(0)
        i = s32[] constant(1)
        j = s32[] parameter(1)
        ROOT r = f32[2,3] dynamic-slice(x, i, j), dynamic_slice_sizes={2,3})"},
    {"dynamic-update-all",
     R"(x = f32[4] parameter(0)
        u = f32[4] parameter(1)
        i = s32[] parameter(2)
        ROOT r = f32[4] dynamic-update-slice(x, u, i))",
     R"(x = f32[4] parameter(0)
        u = f32[3] parameter(1)
        i = s32[] parameter(2)
        ROOT r = f32[4] dynamic-update-slice(x, u, i))"},
    {"sort-single",
     R"(x = f32[4,1] parameter(0)
        ROOT r = f32[4,1] sort(x), dimensions={1}, to_apply=less_f32)",
     R"(x = f32[4,1] parameter(0)
        ROOT r = f32[4,1] sort(x), dimensions={0}, to_apply=less_f32)"},

    // --- reductions
    {"reduce-empty",
     R"(x = f32[0,3] parameter(0)
        z = f32[] parameter(1)
        ROOT r = f32[3] reduce(x, z), dimensions={0}, to_apply=add_f32)",
     R"(x = f32[1,3] parameter(0)
        z = f32[] parameter(1)
        ROOT r = f32[3] reduce(x, z), dimensions={0}, to_apply=add_f32)"},
    {"reduce-trivial",
     R"(x = f32[1,3] parameter(0)
        z = f32[] constant(-inf)
        ROOT r = f32[3] reduce(x, z), dimensions={0}, to_apply=max_f32)",
     R"(x = f32[1,3] parameter(0)
        z = f32[] parameter(1)
        ROOT r = f32[3] reduce(x, z), dimensions={0}, to_apply=add_f32)"},
    {"reduce-trivial",
     R"(x = f32[8,1] parameter(0)
        z = f32[] constant(0)
        ROOT r = f32[8] reduce(x, z), dimensions={1}, to_apply=add_f32)",
     R"(x = f32[8,2] parameter(0)
        z = f32[] constant(0)
        ROOT r = f32[8] reduce(x, z), dimensions={1}, to_apply=add_f32)"},
    {"reduce-trivial",
     R"(x = f32[8] parameter(0)
        z = f32[] parameter(1)
        ROOT r = f32[8] reduce(x, z), dimensions={}, to_apply=mul_f32)",
     R"(x = f32[8] parameter(0)
        z = f32[] parameter(1)
        ROOT r = f32[] reduce(x, z), dimensions={0}, to_apply=mul_f32)"},
    {"reduce-reduce",
     R"(x = f32[3,4,5] parameter(0)
        z = f32[] constant(-inf)
        i = f32[] parameter(1)
        a = f32[3,5] reduce(x, z), dimensions={1}, to_apply=max_f32
        ROOT r = f32[3] reduce(a, i), dimensions={1}, to_apply=max_f32)",
     R"(x = f32[3,4,5] parameter(0)
        z = f32[] constant(0)
        a = f32[3,5] reduce(x, z), dimensions={1}, to_apply=add_f32
        ROOT r = f32[3] reduce(a, z), dimensions={1}, to_apply=add_f32)"},
    {"reduce-reduce",
     R"(x = s32[3,4,5] parameter(0)
        z = s32[] constant(0)
        a = s32[3,5] reduce(x, z), dimensions={1}, to_apply=add_s32
        ROOT r = s32[] reduce(a, z), dimensions={0,1}, to_apply=add_s32)",
     R"(x = s32[3,4,5] parameter(0)
        o = s32[] constant(1)
        z = s32[] constant(0)
        a = s32[3,5] reduce(x, o), dimensions={1}, to_apply=add_s32
        ROOT r = s32[] reduce(a, z), dimensions={0,1}, to_apply=add_s32)"},
    {"reduce-transpose",
     R"(x = f32[3,40,5] parameter(0)
        z = f32[] constant(0)
        t = f32[40,3,5] transpose(x), dimensions={1,0,2}
        ROOT r = f32[3,5] reduce(t, z), dimensions={0}, to_apply=add_f32)",
     R"(x = f32[3,40,5] parameter(0)
        z = f32[] constant(0)
        t = f32[40,3,5] transpose(x), dimensions={1,0,2}
        ROOT r = f32[5] reduce(t, z), dimensions={0,1}, to_apply=add_f32)"},
    {"reduce-window-trivial",
     R"(x = f32[4] parameter(0)
        z = f32[] constant(-inf)
        ROOT r = f32[4] reduce-window(x, z), window={size=1}, to_apply=max_f32)",
     R"(x = f32[4] parameter(0)
        z = f32[] constant(-inf)
        ROOT r = f32[4] reduce-window(x, z), window={size=3 pad=1_1}, to_apply=max_f32)"},

    // --- tuples and branches
    {"element-of-tuple",
     R"(x = f32[] parameter(0)
        y = s32[] parameter(1)
        t = (f32[], s32[]) tuple(x, y)
        ROOT r = s32[] get-tuple-element(t), index=1)",
     R"(t = (f32[], s32[]) parameter(0)
        ROOT r = s32[] get-tuple-element(t), index=1)"},
    {"tuple-of-elements",
     R"(t = (f32[], s32[]) parameter(0)
        x = f32[] get-tuple-element(t), index=0
        y = s32[] get-tuple-element(t), index=1
        ROOT r = (f32[], s32[]) tuple(x, y))",
     R"(t = (f32[], s32[], s32[]) parameter(0)
        x = f32[] get-tuple-element(t), index=0
        y = s32[] get-tuple-element(t), index=1
        ROOT r = (f32[], s32[]) tuple(x, y))"},
    {"conditional-constant",
     R"(x = f32[] parameter(0)
        y = f32[] parameter(1)
        p = pred[] constant(false)
        ROOT r = f32[] conditional(p, x, y), true_computation=twice, false_computation=half)",
     R"(x = f32[] parameter(0)
        y = f32[] parameter(1)
        p = pred[] parameter(2)
        ROOT r = f32[] conditional(p, x, y), true_computation=twice, false_computation=half)"},
    {"conditional-constant",
     R"(x = f32[] parameter(0)
        i = s32[] constant(-3)
        ROOT r = f32[] conditional(i, x, x), branch_computations={twice, half})",
     R"(x = f32[] parameter(0)
        i = s32[] parameter(1)
        ROOT r = f32[] conditional(i, x, x), branch_computations={twice, half})"},
};

}  // namespace

absl::Span<const RuleSample> RuleSamples() { return kSamples; }

}  // namespace lazuli::lowering
