// Fibers of the host form: one stack and one register switch a thread of a block (about 14 ns; ucontext costs 340).
#pragma once

#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "types.cuh"

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <ucontext.h>
#endif

namespace foxhunt {
namespace host {

constexpr size_t PAGE_BYTES = 4096;
constexpr size_t STACK_BYTES = 17 * PAGE_BYTES;  // no power of two: neighbouring stacks do not share cache sets

#if defined(__x86_64__) || defined(__aarch64__)

// A suspended fiber is its stack pointer; the saved registers lie on its stack.
using Context = void*;

extern "C" void foxhunt_fiber_switch(Context* from, Context to);
extern "C" void foxhunt_fiber_start();

#if defined(__APPLE__)
#define FH_ASM_BEGIN(name) ".globl _" name "\n.weak_definition _" name "\n.private_extern _" name "\n.p2align 4\n_" name ":\n"
#else
#define FH_ASM_BEGIN(name) ".weak " name "\n.hidden " name "\n.p2align 4\n" name ":\n"
#endif

#if defined(__x86_64__)
asm(".text\n" FH_ASM_BEGIN("foxhunt_fiber_switch")
    "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
    "  movq %rsp, (%rdi)\n  movq %rsi, %rsp\n"
    "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
    "  ret\n" FH_ASM_BEGIN("foxhunt_fiber_start") "  movq %r12, %rdi\n  callq *%r13\n  ud2\n");

// A context that calls main(argument) on the stack that ends at `top`; main never returns.
inline Context new_context(char* top, void (*main)(void*), void* argument) {
  void** frame = reinterpret_cast<void**>(top) - 9;  // the call in fiber_start finds the stack at a multiple of 16
  frame[0] = frame[1] = frame[4] = frame[5] = nullptr;  // r15, r14, rbx, rbp
  frame[2] = reinterpret_cast<void*>(main);             // r13
  frame[3] = argument;                                  // r12
  frame[6] = reinterpret_cast<void*>(&foxhunt_fiber_start);
  frame[7] = frame[8] = nullptr;
  return frame;
}
#else
asm(".text\n" FH_ASM_BEGIN("foxhunt_fiber_switch")
    "  sub sp, sp, #160\n"
    "  stp x19, x20, [sp, #0]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n"
    "  stp x25, x26, [sp, #48]\n  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
    "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n  stp d12, d13, [sp, #128]\n  stp d14, d15, [sp, #144]\n"
    "  mov x9, sp\n  str x9, [x0]\n  mov sp, x1\n"
    "  ldp x19, x20, [sp, #0]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n"
    "  ldp x25, x26, [sp, #48]\n  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
    "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n  ldp d12, d13, [sp, #128]\n  ldp d14, d15, [sp, #144]\n"
    "  add sp, sp, #160\n  ret\n" FH_ASM_BEGIN("foxhunt_fiber_start") "  mov x0, x19\n  blr x20\n  brk #1\n");

inline Context new_context(char* top, void (*main)(void*), void* argument) {
  void** frame = reinterpret_cast<void**>(top - 160);
  for (int i = 0; i < 20; ++i) frame[i] = nullptr;
  frame[0] = argument;                                       // x19
  frame[1] = reinterpret_cast<void*>(main);                  // x20
  frame[11] = reinterpret_cast<void*>(&foxhunt_fiber_start);  // x30
  return frame;
}
#endif
#undef FH_ASM_BEGIN

inline void switch_context(Context* from, Context to) { foxhunt_fiber_switch(from, to); }

#else  // any other processor

using Context = ucontext_t*;

inline void start_context(unsigned main_high, unsigned main_low, unsigned argument_high, unsigned argument_low) {
  auto join = [](unsigned high, unsigned low) { return static_cast<u64>(high) << 32 | low; };
  reinterpret_cast<void (*)(void*)>(join(main_high, main_low))(
      reinterpret_cast<void*>(join(argument_high, argument_low)));
}
inline Context new_context(char* top, void (*main)(void*), void* argument) {
  char* bottom = top - STACK_BYTES / 2;
  Context context = reinterpret_cast<Context>(bottom - sizeof(ucontext_t));
  getcontext(context);
  context->uc_stack.ss_sp = bottom;
  context->uc_stack.ss_size = static_cast<size_t>(top - bottom);
  const u64 m = reinterpret_cast<u64>(main), a = reinterpret_cast<u64>(argument);
  makecontext(context, reinterpret_cast<void (*)()>(&start_context), 4, static_cast<unsigned>(m >> 32),
              static_cast<unsigned>(m), static_cast<unsigned>(a >> 32), static_cast<unsigned>(a));
  return context;
}
inline void switch_context(Context* from, Context to) {
  ucontext_t here;
  *from = &here;
  swapcontext(&here, to);
}

#endif

// The stacks of one worker thread, grown to the largest block that it has run. A guard page below each stack turns an
// overflow into a fault instead of silent damage (where the system has mappings left for it).
class Stacks {
 public:
  Stacks() = default;
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;
  ~Stacks() { release(); }

  void reserve(int count) {
    if (count <= count_) return;
    release();
    bytes_ = static_cast<size_t>(count) * STACK_BYTES;
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) abort();
    base_ = static_cast<char*>(memory);
    count_ = count;
    for (int i = 0; i < count; ++i)
      if (mprotect(base_ + static_cast<size_t>(i) * STACK_BYTES, PAGE_BYTES, PROT_NONE) != 0) break;
  }

  void release() {
    if (base_ != nullptr) munmap(base_, bytes_);
    base_ = nullptr;
    count_ = 0;
  }

  // The end of stack i, shifted within its page for the same reason.
  char* top(int i) const { return base_ + static_cast<size_t>(i + 1) * STACK_BYTES - static_cast<size_t>(i % 12) * 320; }

 private:
  char* base_ = nullptr;
  size_t bytes_ = 0;
  int count_ = 0;
};

}  // namespace host
}  // namespace foxhunt
