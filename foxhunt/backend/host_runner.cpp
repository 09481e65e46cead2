// Runs a step's launch list on the cores of this machine. Compiled together with a program's launches.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "fault_host.cuh"

namespace {

using namespace foxhunt;
using Entry = void (*)(const u64* words, const i64* counts, i64 first_block, i64 last_block);

// One launch as Python packs it: four 8-byte fields.
struct Launch {
  Entry entry;
  i64 grid;
  const u64* words;
  const i64* counts;
};

// Default rounding, no flush to zero: kernels keep denormals whatever another library has set in this thread.
class PlainFloats {
 public:
#if defined(__x86_64__)
  PlainFloats() : saved_(_mm_getcsr()) { _mm_setcsr(0x1f80); }
  ~PlainFloats() { _mm_setcsr(saved_); }

 private:
  unsigned saved_;
#elif defined(__aarch64__)
  PlainFloats() {
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    asm volatile("msr fpcr, %0" ::"r"(u64{0}));
  }
  ~PlainFloats() { asm volatile("msr fpcr, %0" ::"r"(saved_)); }

 private:
  u64 saved_;
#endif
};

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Threads that share the blocks of one launch at a time. Chunks are claimed by counting down one word, which also
// carries the job's number, so a late thread can neither claim from a finished job nor see a half-written one.
class Pool {
 public:
  explicit Pool(i64 threads) : threads_(threads) {
    for (i64 t = 1; t < threads; ++t) workers_.emplace_back([this] { work(); });
  }
  ~Pool() {
    {
      std::lock_guard<std::mutex> hold(mutex_);
      stop_.store(true);
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  void run(const Launch& launch) {
    if (threads_ == 1 || launch.grid == 1) return launch.entry(launch.words, launch.counts, 0, launch.grid);
    const i64 wanted = threads_ * CHUNKS_PER_THREAD;
    job_ = launch;
    chunk_ = (launch.grid + wanted - 1) / wanted;
    const u64 chunks = static_cast<u64>((launch.grid + chunk_ - 1) / chunk_);
    done_.store(0, std::memory_order_relaxed);
    claim_.store(++number_ << 32 | chunks);
    if (sleeping_.load() != 0) {
      std::lock_guard<std::mutex> hold(mutex_);
      wake_.notify_all();
    }
    while (take()) {
    }
    for (int spins = 0; done_.load(std::memory_order_acquire) != chunks; ++spins)
      spins < SPINS ? relax() : std::this_thread::yield();
  }

 private:
  static constexpr i64 CHUNKS_PER_THREAD = 4;
  static constexpr int SPINS = 2000;  // tens of microseconds: longer than the gap between two launches of a step

  bool waiting() const { return (claim_.load() & 0xffffffffu) == 0; }

  // Runs one chunk of the current job, if one is left.
  bool take() {
    u64 seen = claim_.load();
    do {
      if ((seen & 0xffffffffu) == 0) return false;
    } while (!claim_.compare_exchange_weak(seen, seen - 1));
    // The claimed chunk keeps the job alive until `done_` counts it.
    const i64 first = (static_cast<i64>(seen & 0xffffffffu) - 1) * chunk_;
    const i64 last = first + chunk_ < job_.grid ? first + chunk_ : job_.grid;
    job_.entry(job_.words, job_.counts, first, last);
    done_.fetch_add(1, std::memory_order_release);
    return true;
  }

  void work() {
    const PlainFloats plain;
    while (!stop_.load()) {
      if (take()) continue;
      int spins = 0;
      while (waiting() && spins < SPINS) {
        relax();
        ++spins;
      }
      if (spins < SPINS) continue;
      std::unique_lock<std::mutex> hold(mutex_);
      sleeping_.fetch_add(1);
      wake_.wait(hold, [this] { return stop_.load() || !waiting(); });
      sleeping_.fetch_sub(1);
    }
  }

  const i64 threads_;
  Launch job_{};
  i64 chunk_ = 1;
  u64 number_ = 0;
  alignas(64) std::atomic<u64> claim_{0};  // job number << 32 | chunks left
  alignas(64) std::atomic<u64> done_{0};
  std::atomic<int> sleeping_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::thread> workers_;
};

}  // namespace

#define FH_EXPORT extern "C" __attribute__((visibility("default")))

FH_EXPORT Pool* foxhunt_pool_open(i64 threads) { return new Pool(threads); }

// The pool's threads end and take their fibers with them; the caller, who has run blocks as well, only drops its own.
FH_EXPORT void foxhunt_pool_close(Pool* pool) {
  delete pool;
  if (const auto release = __atomic_load_n(&host::release_thread, __ATOMIC_ACQUIRE)) release();
}

// Runs the list up to `steps` times, and stops between two of them once `budget_ns` have gone. Returns how many were
// completed; *failed is the index of the launch that reported a fault in the next one, or -1.
FH_EXPORT i64 foxhunt_run(Pool* pool, const Launch* launches, i64 count, i64 steps, i64 budget_ns, i64* failed) {
  const PlainFloats plain;
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(budget_ns);
  *failed = -1;
  for (i64 step = 0; step < steps; ++step) {
    if (step != 0 && std::chrono::steady_clock::now() >= end) return step;
    for (i64 k = 0; k < count; ++k) {
      pool->run(launches[k]);
      if (__atomic_load_n(&host::fault.kind, __ATOMIC_ACQUIRE) != 0) {
        *failed = k;
        return step;
      }
    }
  }
  return steps;
}

// Runs the list `steps` times; begin and end of launch k of step s, in ns since the call, go to times[2·(s·count + k)].
// Returns how many steps were completed; *failed as above.
FH_EXPORT i64 foxhunt_run_timed(Pool* pool, const Launch* launches, i64 count, i64 steps, i64* times, i64* failed) {
  const PlainFloats plain;
  const auto start = std::chrono::steady_clock::now();
  const auto now = [&] { return std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count(); };
  *failed = -1;
  for (i64 step = 0; step < steps; ++step) {
    for (i64 k = 0; k < count; ++k, times += 2) {
      times[0] = now();
      pool->run(launches[k]);
      times[1] = now();
      if (__atomic_load_n(&host::fault.kind, __ATOMIC_ACQUIRE) != 0) {
        *failed = k;
        return step;
      }
    }
  }
  return steps;
}

// Copies the fault of the last run and makes room for the next.
FH_EXPORT void foxhunt_take_fault(host::Fault* out) {
  *out = host::fault;
  host::fault = {};
  __atomic_store_n(&host::fault_taken, 0, __ATOMIC_RELEASE);
}
