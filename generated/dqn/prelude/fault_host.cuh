// What the host form and its runner share. A run's first fault: the runner reads and clears it after each launch.
#pragma once

#include "scalars.cuh"

namespace foxhunt {
namespace host {

enum class FaultKind : i32 { none = 0, out_of_range = 1, misaligned = 2, deadlock = 3, divergent = 4, exited = 5 };

struct Fault {
  i32 kind;
  i32 argument;  // word of the launch's arguments, -1 unknown
  i64 index;     // element; for collectives the thread
  i64 count;     // elements behind the argument
};

// Hidden, so that each compiled program has its own.
#define FH_OWN __attribute__((visibility("hidden")))
FH_OWN inline Fault fault{};
FH_OWN inline i32 fault_taken = 0;

// Gives back the memory in which the calling thread runs fibers; null until some thread of the program has had any. A
// thread that ends does so by itself; the one that closes the program goes on, and mappings are a limited good.
FH_OWN inline void (*release_thread)() = nullptr;

// Keeps the first fault, drops later ones.
inline void report(FaultKind kind, i32 argument, i64 index, i64 count) {
  i32 expected = 0;
  if (!__atomic_compare_exchange_n(&fault_taken, &expected, 1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return;
  fault.argument = argument;
  fault.index = index;
  fault.count = count;
  __atomic_store_n(&fault.kind, static_cast<i32>(kind), __ATOMIC_RELEASE);
}

}  // namespace host
}  // namespace foxhunt
