// Elementary functions from fma polynomials: one source, the same bits on the host and on the GPU, <= 2 ulp.
//
// No branch except the far range of sin and cos, so that g++ vectorises loops over them. A NaN result of a function here
// is always 0x7fffffff, the NaN that CUDA arithmetic gives. Denormals are kept. `tests/host/test_math.py` measures the
// errors over the bit patterns of f32.
#pragma once

#include "types.cuh"

namespace foxhunt {

FH_DEVICE u32 bits_of(f32 x) {
#if FOXHUNT_CUDA
  return __float_as_uint(x);
#else
  u32 b;
  __builtin_memcpy(&b, &x, sizeof b);
  return b;
#endif
}
FH_DEVICE f32 from_bits(u32 b) {
#if FOXHUNT_CUDA
  return __uint_as_float(b);
#else
  f32 x;
  __builtin_memcpy(&x, &b, sizeof x);
  return x;
#endif
}

constexpr u32 NAN_BITS = 0x7fffffffu;
constexpr u32 INF_BITS = 0x7f800000u;
constexpr u32 SKIP_BITS = 0x7fc0f0f0u;  // a producer's "no observation this step"

FH_DEVICE f32 nan_() { return from_bits(NAN_BITS); }
FH_DEVICE f32 inf_() { return from_bits(INF_BITS); }
FH_DEVICE f32 skip_() { return from_bits(SKIP_BITS); }
FH_DEVICE bool is_nan_(f32 x) { return x != x; }
FH_DEVICE bool is_finite_(f32 x) { return (bits_of(x) & INF_BITS) != INF_BITS; }
FH_DEVICE bool is_skip_(f32 x) { return bits_of(x) == SKIP_BITS; }

#if FOXHUNT_CUDA
FH_DEVICE f32 fma_(f32 a, f32 b, f32 c) { return __fmaf_rn(a, b, c); }
FH_DEVICE f32 sqrt_(f32 x) { return __fsqrt_rn(x); }
FH_DEVICE f32 floor_(f32 x) { return floorf(x); }
FH_DEVICE f32 ceil_(f32 x) { return ceilf(x); }
#else
FH_DEVICE f32 fma_(f32 a, f32 b, f32 c) { return __builtin_fmaf(a, b, c); }
FH_DEVICE f32 sqrt_(f32 x) { return __builtin_sqrtf(x); }
FH_DEVICE f32 floor_(f32 x) { return __builtin_floorf(x); }
FH_DEVICE f32 ceil_(f32 x) { return __builtin_ceilf(x); }
#endif

FH_DEVICE f32 abs_(f32 x) { return from_bits(bits_of(x) & 0x7fffffffu); }
FH_DEVICE i32 abs_(i32 x) { return x < 0 ? -x : x; }
FH_DEVICE i64 abs_(i64 x) { return x < 0 ? -x : x; }
FH_DEVICE f32 copysign_(f32 magnitude, f32 sign) {
  return from_bits((bits_of(magnitude) & 0x7fffffffu) | (bits_of(sign) & 0x80000000u));
}
// -1, 0 or 1; 0 for NaN.
FH_DEVICE f32 sign_(f32 x) { return x > 0.0f ? 1.0f : (x < 0.0f ? -1.0f : 0.0f); }

// The larger and the smaller; the other operand where one is NaN; +0 is larger than -0. Commutative in bits.
FH_DEVICE f32 max_(f32 a, f32 b) {
  const f32 tie = from_bits(bits_of(a) & bits_of(b));
  const f32 ordered = a > b ? a : (a < b ? b : tie);
  return a != a ? (b != b ? nan_() : b) : (b != b ? a : ordered);
}
FH_DEVICE f32 min_(f32 a, f32 b) {
  const f32 tie = from_bits(bits_of(a) | bits_of(b));
  const f32 ordered = a < b ? a : (a > b ? b : tie);
  return a != a ? (b != b ? nan_() : b) : (b != b ? a : ordered);
}
template <class T>
FH_DEVICE T max_(T a, T b) {
  return a > b ? a : b;
}
template <class T>
FH_DEVICE T min_(T a, T b) {
  return a < b ? a : b;
}
template <class T>
FH_DEVICE T clamp_(T x, T low, T high) {
  return min_(max_(x, low), high);
}

// Towards zero, saturating; NaN gives 0.
FH_DEVICE i32 to_i32(f32 x) {
  const bool fits = x >= -2147483648.0f && x < 2147483648.0f;
  const i32 inside = static_cast<i32>(fits ? x : 0.0f);
  return fits ? inside : (x > 0.0f ? 2147483647 : (x < 0.0f ? -2147483647 - 1 : 0));
}
FH_DEVICE i64 to_i64(f32 x) {
  const bool fits = x >= -9223372036854775808.0f && x < 9223372036854775808.0f;
  const i64 inside = static_cast<i64>(fits ? x : 0.0f);
  const i64 highest = 9223372036854775807LL;
  return fits ? inside : (x > 0.0f ? highest : (x < 0.0f ? -highest - 1 : 0));
}

namespace detail {

constexpr f32 ROUND = 0x1.8p23f;  // x + ROUND - ROUND is x rounded to an integer, |x| < 2^22
constexpr u32 ROUND_BITS = 0x4b400000u;
constexpr f32 LOG2_E = 0x1.715476p+0f;
constexpr f32 LN2_HIGH = 0x1.62e430p-1f;
constexpr f32 LN2_LOW = -0x1.05c610p-29f;

// 2^n for a normal result.
FH_DEVICE f32 power2(i32 n) { return from_bits(static_cast<u32>(n + 127) << 23); }

// x = n ln2 + r with |r| <= ln2 / 2.
struct Reduced {
  i32 n;
  f32 r;
};
FH_DEVICE Reduced reduce_exp(f32 x) {
  const f32 t = fma_(x, LOG2_E, ROUND);
  const f32 n = t - ROUND;
  const f32 r = fma_(n, -LN2_LOW, fma_(n, -LN2_HIGH, x));
  return {static_cast<i32>(bits_of(t) - ROUND_BITS), r};
}

// (exp(r) - 1 - r) / r^2
FH_DEVICE f32 expm1_tail(f32 r) {
  f32 q = 0x1.9e7c82p-13f;
  q = fma_(q, r, 0x1.6d3a5ep-10f);
  q = fma_(q, r, 0x1.1112d4p-7f);
  q = fma_(q, r, 0x1.5554f8p-5f);
  q = fma_(q, r, 0x1.555554p-3f);
  return fma_(q, r, 0.5f);
}

// sin and cos of r, |r| <= pi / 4
FH_DEVICE f32 sin_near(f32 r) {
  const f32 s = r * r;
  f32 q = -0x1.9953p-13f;
  q = fma_(q, s, 0x1.110776p-7f);
  q = fma_(q, s, -0x1.555546p-3f);
  return fma_(q * s, r, r);
}
FH_DEVICE f32 cos_near(f32 r) {
  const f32 s = r * r;
  f32 q = 0x1.99e904p-16f;
  q = fma_(q, s, -0x1.6c0c2ap-10f);
  q = fma_(q, s, 0x1.55554ap-5f);
  q = fma_(q, s, -0.5f);
  return fma_(q, s, 1.0f);
}

// |x| = quarter * pi/2 + r, |r| <= pi / 4
struct Angle {
  u32 quarter;
  f32 r;
};
constexpr f32 FAR_ANGLE = 32768.0f;

FH_DEVICE Angle reduce_near(f32 x) {
  const f32 t = fma_(x, 0x1.45f306p-1f, ROUND);
  const f32 q = t - ROUND;
  f32 r = fma_(q, -0x1.921fb6p+0f, x);
  r = fma_(q, 0x1.777a5cp-25f, r);
  r = fma_(q, 0x1.ee59dap-50f, r);
  return {bits_of(t) - ROUND_BITS, r};
}

// Payne and Hanek: x = m 2^k with a 24-bit integer m; the 96 bits of 2/pi that matter, behind two integer bits.
FH_DEVICE Angle reduce_far(f32 x) {
  const u32 words[10] = {0u,          0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u,
                         0xdb629599u, 0x3c439041u, 0xfe5163abu, 0xdebbc561u, 0u};
  const u32 bits = bits_of(x);
  const u64 m = (bits & 0x7fffffu) | 0x800000u;
  const int skip = static_cast<int>(bits >> 23 & 0xff) - 150 - 2 + 32;  // bits of `words` above the window
  const int w = skip / 32, s = skip % 32;
  u32 window[3];
  for (int i = 0; i < 3; ++i)
    window[i] = static_cast<u32>(((static_cast<u64>(words[w + i]) << 32 | words[w + i + 1]) << s) >> 32);
  const u64 low = m * window[2];
  const u64 middle = m * window[1] + (low >> 32);
  const u64 high = m * window[0] + (middle >> 32);
  const u64 fixed = high << 32 | (middle & 0xffffffffu);  // 2 integer and 62 fraction bits
  const u64 nearest = fixed + (u64{1} << 61);
  const i64 fraction = static_cast<i64>(fixed << 2);  // as a signed part of a quarter, 64 bits
  const f64 r = static_cast<f64>(fraction) * (1.5707963267948966 * 0x1p-64);
  return {static_cast<u32>(nearest >> 62), static_cast<f32>(r)};
}

FH_DEVICE Angle reduce_angle(f32 x) { return x < FAR_ANGLE ? reduce_near(x) : reduce_far(x); }

}  // namespace detail

FH_DEVICE f32 exp_(f32 x) {
  const f32 inside = x > 89.0f ? 89.0f : (x < -104.5f ? -104.5f : x);
  const detail::Reduced a = detail::reduce_exp(inside);
  const f32 p = fma_(detail::expm1_tail(a.r), a.r * a.r, a.r) + 1.0f;
  // Two factors: 2^n itself may be above or below the normal range.
  const i32 half = a.n >> 1;
  const f32 y = p * detail::power2(half) * detail::power2(a.n - half);
  return x != x ? nan_() : y;
}

// exp(x) - 1
FH_DEVICE f32 expm1_(f32 x) {
  const f32 inside = x > 89.0f ? 89.0f : (x < -18.0f ? -18.0f : x);
  const detail::Reduced a = detail::reduce_exp(inside);
  const f32 near = fma_(detail::expm1_tail(a.r), a.r * a.r, a.r);
  const f32 scale = detail::power2(a.n - 1);
  const f32 far = 2.0f * fma_(near, scale, scale - 0.5f);
  const f32 y = abs_(x) < 0x1p-26f ? x : (a.n == 0 ? near : far);
  return x != x ? nan_() : y;
}

// Natural logarithm; -inf at 0, NaN below.
FH_DEVICE f32 log_(f32 x) {
  const bool denormal = x < 0x1p-126f;
  const u32 bits = bits_of(denormal ? x * 0x1p25f : x);
  const i32 e = static_cast<i32>(bits - 0x3f2aaaabu) >> 23;  // mantissa in [2/3, 4/3)
  const f32 f = from_bits(bits - (static_cast<u32>(e) << 23)) - 1.0f;
  const f32 s = f * f;
  f32 q = -0x1.07ec50p-3f;
  q = fma_(q, f, 0x1.1e724cp-3f);
  q = fma_(q, f, -0x1.f3201ap-4f);
  q = fma_(q, f, 0x1.1ed486p-3f);
  q = fma_(q, f, -0x1.559d16p-3f);
  q = fma_(q, f, 0x1.99d058p-3f);
  q = fma_(q, f, -0x1.fffef6p-3f);
  q = fma_(q, f, 0x1.555506p-2f);
  q = fma_(q, f, -0.5f);
  const f32 exponent = static_cast<f32>(denormal ? e - 25 : e);
  const f32 y = fma_(exponent, detail::LN2_HIGH, fma_(q, s, f));
  const f32 positive = x == inf_() ? x : y;
  const f32 edge = x == 0.0f ? -inf_() : nan_();
  return x > 0.0f ? positive : edge;
}

// log(1 + x)
FH_DEVICE f32 log1p_(f32 x) {
  const f32 u = 1.0f + x;
  const f32 lost = (x - (u - 1.0f)) / u;
  const f32 y = log_(u) + (x < 0x1p24f && x > -1.0f ? lost : 0.0f);
  return x == 0.0f ? x : y;
}

FH_DEVICE f32 tanh_(f32 x) {
  const f32 a = abs_(x);
  const f32 s = a * a;
  f32 q = -0x1.9454f0p-8f;
  q = fma_(q, s, 0x1.5811f6p-6f);
  q = fma_(q, s, -0x1.b905c4p-5f);
  q = fma_(q, s, 0x1.110c5ep-3f);
  q = fma_(q, s, -0x1.555548p-2f);
  const f32 near = fma_(q * s, a, a);
  const f32 far = 1.0f - 2.0f / (exp_(2.0f * a) + 1.0f);
  const f32 y = copysign_(a < 0.55f ? near : far, x);
  return x != x ? nan_() : y;
}

// 1 / (1 + exp(-x))
FH_DEVICE f32 sigmoid_(f32 x) {
  const f32 e = exp_(-abs_(x));
  return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

// log(1 + exp(x))
FH_DEVICE f32 softplus_(f32 x) { return (x > 0.0f ? x : 0.0f) + log1p_(exp_(-abs_(x))); }

// x above 0, exp(x) - 1 below
FH_DEVICE f32 elu_(f32 x) { return x > 0.0f ? x : expm1_(x); }
// the slope of ELU where it gave y: exp(x) is 1 + y
FH_DEVICE f32 elu_slope_(f32 y) { return y > 0.0f ? 1.0f : 1.0f + y; }

FH_DEVICE f32 sin_(f32 x) {
  const detail::Angle a = detail::reduce_angle(abs_(x));
  const f32 y = (a.quarter & 1) ? detail::cos_near(a.r) : detail::sin_near(a.r);
  const u32 sign = (bits_of(x) ^ (a.quarter << 30)) & 0x80000000u;
  return is_finite_(x) ? from_bits(bits_of(y) ^ sign) : nan_();
}
FH_DEVICE f32 cos_(f32 x) {
  const detail::Angle a = detail::reduce_angle(abs_(x));
  const f32 y = (a.quarter & 1) ? detail::sin_near(a.r) : detail::cos_near(a.r);
  const u32 sign = ((a.quarter + 1) << 30) & 0x80000000u;
  return is_finite_(x) ? from_bits(bits_of(y) ^ sign) : nan_();
}

// cos(2 pi u) for u in [0, 1]: exact reduction, no far range.
FH_DEVICE f32 cos_turns_(f32 u) {
  const f32 q = floor_(fma_(u, 4.0f, 0.5f));
  const f32 r = fma_(u, 4.0f, -q) * 0x1.921fb6p+0f;
  const u32 quarter = static_cast<u32>(to_i32(q));
  const f32 y = (quarter & 1) ? detail::sin_near(r) : detail::cos_near(r);
  return from_bits(bits_of(y) ^ (((quarter + 1) << 30) & 0x80000000u));
}

}  // namespace foxhunt
