// CUDA's model of execution on a processor, for tests: every thread of a block is a fiber that runs to its next
// meeting point (__syncthreads, __syncwarp, shuffle, ballot). It finds what a GPU leaves undefined: lanes that do not
// meet where their mask says they do, meetings with lanes that have returned, shared memory that nobody wrote (it holds
// NaN), and sums or races that depend on the order of threads (`order` picks one). Shuffles and ballots are meetings here;
// on a GPU they order no accesses to memory, so a missing __syncwarp beside one of them is not found.

#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

using std::fabs;
using std::fmax;
using std::max;
using std::min;
using std::sqrt;

#define __global__
#define __device__
#define __launch_bounds__(...)
#define __restrict__
#define __shared__ static __attribute__((section("shared_memory")))

extern char __start_shared_memory[] __attribute__((weak));
extern char __stop_shared_memory[] __attribute__((weak));

struct alignas(16) double2 {
    double x, y;
};

struct dim3 {
    unsigned x, y, z;
};

namespace emulator {

constexpr size_t STACK = 64 * 1024;

struct Thread {
    ucontext_t context;  // enters the kernel; from then on `left` is where it goes on: no system call, unlike contexts
    jmp_buf left;
    std::vector<char> stack = std::vector<char>(STACK);
    bool started = false, finished = false, waits = false;
    int place = 0;       // line of the meeting point
    unsigned mask = 0;   // lanes that meet; of no use in a meeting of the block
    bool whole = false;  // a meeting of the block
    int source = 0;      // lane whose value this one gets
    uint64_t value = 0, result = 0;
};

struct Block {
    std::vector<Thread> threads;
    jmp_buf scheduler;
    int current = 0;
    void (*body)(void*);
    void* arguments;
};

inline Block* block = nullptr;
inline dim3 thread_index, block_index, block_size, grid_size;

inline void enter() {
    block->body(block->arguments);
    block->threads[block->current].finished = true;
    _longjmp(block->scheduler, 1);
}

// Let thread k run to its next meeting point.
__attribute__((noinline)) inline void resume(int k) {
    Thread& t = block->threads[k];
    block->current = k;
    thread_index = {unsigned(k), 0, 0};
    if (_setjmp(block->scheduler) != 0) return;
    if (t.started) _longjmp(t.left, 1);
    t.started = true;
    setcontext(&t.context);
}

// Wait for the lanes of `mask`, or for the whole block; returns the value that the lane `source` brought.
__attribute__((noinline)) inline uint64_t meet(int place, unsigned mask, bool whole, int source, uint64_t value) {
    Thread& t = block->threads[block->current];
    t.waits = true;
    t.place = place, t.mask = mask, t.whole = whole, t.source = source, t.value = value;
    if (_setjmp(t.left) == 0) _longjmp(block->scheduler, 1);
    return block->threads[block->current].result;
}

inline std::string complaint(int thread, const char* what) {
    const Thread& t = block->threads[thread];
    char text[160];
    std::snprintf(text, sizeof text, "block %u, thread %d, line %d: %s", block_index.x, thread, t.place, what);
    return text;
}

// Let go the threads of one warp whose meetings are complete; returns whether there were any.
inline bool release_warp(int begin, int end, std::string& problem) {
    bool any = false;
    for (int k = begin; k < end; ++k) {
        Thread& t = block->threads[k];
        if (t.finished || !t.waits || t.whole) continue;
        if (!(t.mask >> (k - begin) & 1)) {
            problem = complaint(k, "a lane is not in the mask it names");
            return false;
        }
        bool complete = true;
        for (int other = begin; other < end; ++other) {
            if (!(t.mask >> (other - begin) & 1)) continue;
            const Thread& o = block->threads[other];
            if (o.finished) {
                problem = complaint(k, "waits for a lane that has returned");
                return false;
            }
            complete = complete && o.waits && !o.whole && o.place == t.place && o.mask == t.mask;
        }
        if (!complete) continue;
        uint64_t votes = 0;
        for (int other = begin; other < end; ++other) {
            const bool meets = t.mask >> (other - begin) & 1;
            if (meets && block->threads[other].value != 0) votes |= 1ull << (other - begin);
        }
        for (int other = begin; other < end; ++other) {
            if (!(t.mask >> (other - begin) & 1)) continue;
            Thread& o = block->threads[other];
            if (o.source >= 0) {
                if (!(t.mask >> o.source & 1)) {
                    problem = complaint(other, "reads from a lane that is not in the mask");
                    return false;
                }
                o.result = block->threads[begin + o.source].value;
            } else {
                o.result = votes;
            }
        }
        for (int other = begin; other < end; ++other) {
            if (t.mask >> (other - begin) & 1) block->threads[other].waits = false;
        }
        any = true;
    }
    return any;
}

inline bool release_block(std::string& problem) {
    int place = -1;
    for (size_t k = 0; k < block->threads.size(); ++k) {
        const Thread& t = block->threads[k];
        if (t.finished) continue;
        if (!t.waits || !t.whole) return false;
        if (place >= 0 && t.place != place) {
            problem = complaint(int(k), "threads wait for the block at different lines");
            return false;
        }
        place = t.place;
    }
    for (Thread& t : block->threads) t.waits = false;
    return place >= 0;
}

// Who runs when; order 0: threads by number, 1: backwards, others: shuffled, in every round anew.
inline void deal(std::vector<int>& turns, int order, uint64_t& dice) {
    const int count = int(turns.size());
    for (int k = 0; k < count; ++k) turns[k] = order == 1 ? count - 1 - k : k;
    for (int k = count - 1; order > 1 && k > 0; --k) {
        dice = dice * 6364136223846793005ull + 1442695040888963407ull;
        std::swap(turns[k], turns[(dice >> 33) % (k + 1)]);
    }
}

// Run a grid. Returns what is wrong, empty if nothing.
inline std::string run(int blocks, int threads, int order, void (*body)(void*), void* arguments) {
    uint64_t dice = order;
    std::vector<int> turns(threads);
    grid_size = {unsigned(blocks), 1, 1};
    block_size = {unsigned(threads), 1, 1};
    static Block own;  // stacks are used again: fresh memory costs more than most runs
    own.body = body;
    own.arguments = arguments;
    if (int(own.threads.size()) != threads) own.threads = std::vector<Thread>(threads);
    block = &own;
    for (int b = 0; b < blocks; ++b) {
        block_index = {unsigned(order == 1 ? blocks - 1 - b : b), 0, 0};
        if (__start_shared_memory != nullptr) {
            std::memset(__start_shared_memory, 0xff, __stop_shared_memory - __start_shared_memory);
        }
        for (Thread& t : own.threads) {
            t.started = t.finished = t.waits = false;
            getcontext(&t.context);
            t.context.uc_stack.ss_sp = t.stack.data();
            t.context.uc_stack.ss_size = STACK;
            t.context.uc_link = nullptr;
            makecontext(&t.context, enter, 0);
        }
        for (bool alive = true; alive;) {
            deal(turns, order, dice);
            bool moved = false;
            for (int k : turns) {
                Thread& t = own.threads[k];
                if (t.finished || t.waits) continue;
                resume(k);
                moved = true;
            }
            std::string problem;
            for (int begin = 0; begin < threads && problem.empty(); begin += 32) {
                moved = release_warp(begin, min(begin + 32, threads), problem) || moved;
            }
            if (problem.empty()) moved = release_block(problem) || moved;
            if (!problem.empty()) return problem;
            alive = false;
            for (const Thread& t : own.threads) alive = alive || !t.finished;
            if (alive && !moved) {
                for (int k = 0; k < threads; ++k) {
                    if (!own.threads[k].finished) return complaint(k, "waits for threads that wait elsewhere");
                }
            }
        }
    }
    return "";
}

template <class T>
uint64_t bits_of(T value) {
    static_assert(sizeof(T) <= 8);
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
}

template <class T>
T shuffle(int place, unsigned mask, T value, int source) {
    const uint64_t bits = meet(place, mask, false, source, bits_of(value));
    T result;
    std::memcpy(&result, &bits, sizeof result);
    return result;
}

inline int lane() { return thread_index.x & 31; }

// Call a kernel with arguments as cuLaunchKernel takes them: the address of each.
template <class... Arguments, size_t... k>
std::string launch(void (*kernel)(Arguments...), void** values, int blocks, int threads, int order,
                   std::index_sequence<k...>) {
    auto call = [&] { kernel(*static_cast<Arguments*>(values[k])...); };
    return run(blocks, threads, order, [](void* it) { (*static_cast<decltype(call)*>(it))(); }, &call);
}

template <class... Arguments>
const char* launch(void (*kernel)(Arguments...), void** values, int count, int blocks, int threads, int order) {
    static std::string problem;
    problem = count == int(sizeof...(Arguments))
                  ? launch(kernel, values, blocks, threads, order, std::index_sequence_for<Arguments...>{})
                  : "the kernel takes " + std::to_string(sizeof...(Arguments)) + " arguments";
    return problem.c_str();
}

}  // namespace emulator

#define threadIdx emulator::thread_index
#define blockIdx emulator::block_index
#define blockDim emulator::block_size
#define gridDim emulator::grid_size

#define __syncthreads() emulator::meet(__LINE__, 0, true, 0, 0)
inline void sync_lanes(int place, unsigned mask = 0xffffffffu) { emulator::meet(place, mask, false, emulator::lane(), 0); }
#define __syncwarp(...) sync_lanes(__LINE__ __VA_OPT__(, ) __VA_ARGS__)
#define __ballot_sync(mask, vote) unsigned(emulator::meet(__LINE__, mask, false, -1, (vote) ? 1 : 0))

template <class T>
T shuffle_from(int place, unsigned mask, T value, int source, int width = 32) {
    return emulator::shuffle(place, mask, value, emulator::lane() / width * width + source % width);
}
template <class T>
T shuffle_down(int place, unsigned mask, T value, int step, int width = 32) {
    const int lane = emulator::lane();
    return emulator::shuffle(place, mask, value, lane % width + step < width ? lane + step : lane);
}
#define __shfl_sync(mask, ...) shuffle_from(__LINE__, mask, __VA_ARGS__)
#define __shfl_down_sync(mask, ...) shuffle_down(__LINE__, mask, __VA_ARGS__)

inline int __ffs(unsigned bits) { return __builtin_ffs(int(bits)); }
inline int __popc(unsigned bits) { return __builtin_popcount(bits); }
template <class T>
T __ldg(const T* address) {
    return *address;
}
