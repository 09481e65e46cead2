// Accessors of the host debug form: every index is checked, the first fault is reported with its argument's word.
#pragma once

#include "fault_host.cuh"
#include "scalars.cuh"

namespace foxhunt {

template <class T>
class Checked {
 public:
  FH_DEVICE Checked(T* p, i64 count, i32 word) : p_(p), count_(count), word_(word) {}

 protected:
  bool inside(i64 i, i64 width = 1) const {
    if (i >= 0 && i <= count_ - width) return true;
    host::report(host::FaultKind::out_of_range, word_, i, count_);
    return false;
  }
  bool aligned(i64 i) const {
    if ((reinterpret_cast<u64>(p_ + i) & 15) == 0) return true;
    host::report(host::FaultKind::misaligned, word_, i, count_);
    return false;
  }
  template <class A>
  A shifted(i64 offset) const {
    return A(p_ + offset, count_ - offset, word_);
  }

  T* p_;
  i64 count_;
  i32 word_;
};

template <class T>
class In : public Checked<const T> {
 public:
  using Checked<const T>::Checked;
  T operator[](i64 i) const { return this->inside(i) ? this->p_[i] : T{}; }
  In operator+(i64 offset) const { return this->template shifted<In>(offset); }
  friend bool aligned4(In x, i64 i) { return (reinterpret_cast<u64>(x.p_ + i) & 15) == 0; }
  friend f32x4 load4(In x, i64 i) {
    if (!x.inside(i, 4) || !x.aligned(i)) return {};
    return {x.p_[i], x.p_[i + 1], x.p_[i + 2], x.p_[i + 3]};
  }
  friend T load_fresh(In x, i64 i) { return x[i]; }
};

template <class T>
class Out : public Checked<T> {
 public:
  // What x[i] of an Out is: it can be assigned to, and nothing else.
  class Cell {
   public:
    Cell(T* p) : p_(p) {}
    void operator=(T v) const {
      if (p_ != nullptr) *p_ = v;
    }
    Cell(const Cell&) = default;
    void operator=(const Cell&) const = delete;

   private:
    T* p_;
  };
  using Checked<T>::Checked;
  Cell operator[](i64 i) const { return Cell(this->inside(i) ? this->p_ + i : nullptr); }
  Out operator+(i64 offset) const { return this->template shifted<Out>(offset); }
  friend bool aligned4(Out x, i64 i) { return (reinterpret_cast<u64>(x.p_ + i) & 15) == 0; }
  friend void store4(Out x, i64 i, f32x4 v) {
    if (!x.inside(i, 4) || !x.aligned(i)) return;
    x.p_[i] = v.x;
    x.p_[i + 1] = v.y;
    x.p_[i + 2] = v.z;
    x.p_[i + 3] = v.w;
  }
  // What other blocks of this launch stored before their ticket: the one sanctioned read.
  friend T load_fresh(Out x, i64 i) { return x.inside(i) ? x.p_[i] : T{}; }
};

template <class T>
class Update : public Checked<T> {
 public:
  using Checked<T>::Checked;
  T& operator[](i64 i) const {
    static thread_local T elsewhere;
    return this->inside(i) ? this->p_[i] : elsewhere;
  }
  Update operator+(i64 offset) const { return this->template shifted<Update>(offset); }
  operator In<T>() const { return In<T>(this->p_, this->count_, this->word_); }
  friend bool aligned4(Update x, i64 i) { return (reinterpret_cast<u64>(x.p_ + i) & 15) == 0; }
  friend f32x4 load4(Update x, i64 i) {
    if (!x.inside(i, 4) || !x.aligned(i)) return {};
    return {x.p_[i], x.p_[i + 1], x.p_[i + 2], x.p_[i + 3]};
  }
  friend void store4(Update x, i64 i, f32x4 v) { store4(Out<T>(x.p_, x.count_, x.word_), i, v); }
  friend T load_fresh(Update x, i64 i) { return x[i]; }
};

}  // namespace foxhunt
