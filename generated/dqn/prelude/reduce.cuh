// The operations of reductions and their identities. Trees have one fixed order on both sides.
#pragma once

#include "math.cuh"
#include "types.cuh"

namespace foxhunt {

constexpr int WARP = 32;

template <class T>
struct Limits;
template <>
struct Limits<f32> {
  FH_DEVICE static f32 lowest() { return from_bits(0xff800000u); }
  FH_DEVICE static f32 highest() { return from_bits(0x7f800000u); }
};
template <>
struct Limits<f64> {
  FH_DEVICE static f64 lowest() { return -static_cast<f64>(from_bits(0x7f800000u)); }
  FH_DEVICE static f64 highest() { return static_cast<f64>(from_bits(0x7f800000u)); }
};
template <>
struct Limits<i32> {
  FH_DEVICE static i32 lowest() { return -2147483647 - 1; }
  FH_DEVICE static i32 highest() { return 2147483647; }
};
template <>
struct Limits<u32> {
  FH_DEVICE static u32 lowest() { return 0; }
  FH_DEVICE static u32 highest() { return 0xffffffffu; }
};
template <>
struct Limits<i64> {
  FH_DEVICE static i64 lowest() { return -9223372036854775807LL - 1; }
  FH_DEVICE static i64 highest() { return 9223372036854775807LL; }
};

// Sum. The identity is -0.0: x + -0.0 has the bits of x for every x.
struct Sum {
  template <class T>
  FH_DEVICE static T identity() {
    return static_cast<T>(-0.0f);
  }
  template <class T>
  FH_DEVICE static T combine(T a, T b) {
    return a + b;
  }
};

// Maximum and minimum leave NaN out (as fmaxf does); all NaN gives NaN.
struct Max {
  template <class T>
  FH_DEVICE static T identity() {
    return Limits<T>::lowest();
  }
  template <class T>
  FH_DEVICE static T combine(T a, T b) {
    return max_(a, b);
  }
};
struct Min {
  template <class T>
  FH_DEVICE static T identity() {
    return Limits<T>::highest();
  }
  template <class T>
  FH_DEVICE static T combine(T a, T b) {
    return min_(a, b);
  }
};

// The smallest power of two that is at least n.
FH_DEVICE constexpr int power_of_two(int n) {
  int p = 1;
  while (p < n) p += p;
  return p;
}

}  // namespace foxhunt
