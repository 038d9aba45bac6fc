// Spans and the central lists of small blocks. A span starts with a 64-byte header, found from a block's
// address by masking (spans are aligned to their size, and the size follows from the class). Locks: 8 stripes
// over the classes, one for the spans; never both at once. Address space of spans is never unmapped, only
// their memory is discarded.
#include "runtime/cpu/small_blocks.h"

#include <algorithm>
#include <mutex>

#include "base/prim/prim.h"
#include "runtime/cpu/large_blocks.h"
#include "runtime/cpu/memory_budget.h"
#include "runtime/cpu/size_class.h"

namespace vesta::cpu {
namespace {

struct alignas(64) Span {
  Span* next = nullptr;  // in its class's list of spans with free blocks, or in a list of unused spans
  Span* prev = nullptr;
  FreeLink* free = nullptr;
  uint32_t free_count = 0;  // blocks on `free` plus blocks never handed out
  uint32_t carved = 0;      // blocks handed out at least once; the rest of the span is untouched memory
  uint32_t capacity = 0;
};
static_assert(sizeof(Span) == 64);

// Few sizes keep unused spans exchangeable between classes; a header costs at most 1/16 of a span's blocks.
constexpr size_t kSpanBytes[] = {64 << 10, 256 << 10, 1 << 20};
constexpr size_t kArenaBytes = 4 << 20;
// Unused spans keep up to this much memory before it is given back.
constexpr size_t kMaxIdleBytes = 8 << 20;

constexpr unsigned span_kind(unsigned size_class) {
  uint32_t bytes = kSmallClassBytes[size_class];
  return bytes <= 1024 ? 0 : bytes <= 8192 ? 1 : 2;
}

struct Class {
  Span* spans = nullptr;  // those with free blocks
  uint64_t blocks_out = 0;
};

constexpr unsigned kStripes = 8;
struct alignas(64) Stripe {
  std::mutex mutex;
  Class classes[kSmallClasses / kStripes];
};

struct Spans {
  std::mutex mutex;
  Span* resident[3] = {};
  Span* discarded[3] = {};
  char* arena = nullptr;
  size_t arena_left = 0;
  size_t idle_bytes = 0;
};

// Process-wide, trivially destroyed: blocks may still be freed while static objects are destroyed.
constinit Stripe stripes[kStripes];
constinit Spans spans;

Stripe& stripe_of(unsigned size_class) { return stripes[size_class % kStripes]; }
Class& class_of(unsigned size_class) { return stripe_of(size_class).classes[size_class / kStripes]; }

void link(Span*& list, Span* span) {
  span->prev = nullptr;
  span->next = list;
  if (list) list->prev = span;
  list = span;
}

void unlink(Span*& list, Span* span) {
  (span->prev ? span->prev->next : list) = span->next;
  if (span->next) span->next->prev = span->prev;
}

// The header's page stays, because it holds the list; 4 KiB of 64 KiB at worst.
void discard(Span* span, size_t bytes) {
  size_t keep = prim::page_bytes();
  if (bytes > keep) prim::discard_pages(reinterpret_cast<char*>(span) + keep, bytes - keep);
  unreserve(bytes);
}

// With spans.mutex held. Null where no memory is to be had.
Span* find_span(unsigned kind) {
  const size_t bytes = kSpanBytes[kind];
  if (Span* span = spans.resident[kind]) {
    spans.resident[kind] = span->next;
    spans.idle_bytes -= bytes;
    return span;
  }
  if (!reserve(bytes)) return nullptr;
  if (Span* span = spans.discarded[kind]) {
    spans.discarded[kind] = span->next;
    return span;
  }
  // Spans sit at multiples of their size. What is skipped for that, or left at the arena's end, is untouched
  // memory.
  size_t skip = (bytes - reinterpret_cast<uintptr_t>(spans.arena) % bytes) % bytes;
  if (skip + bytes > spans.arena_left) {
    void* fresh = prim::map_pages(kArenaBytes, kSpanBytes[2], false);
    if (!fresh) {
      unreserve(bytes);
      return nullptr;
    }
    spans.arena = static_cast<char*>(fresh);
    spans.arena_left = kArenaBytes;
    skip = 0;
  }
  Span* span = reinterpret_cast<Span*>(spans.arena + skip);
  spans.arena += skip + bytes;
  spans.arena_left -= skip + bytes;
  return span;
}

Span* new_span(unsigned size_class) {
  const unsigned kind = span_kind(size_class);
  Span* span = nullptr;
  for (int attempt = 0; attempt < 2 && !span; ++attempt) {
    if (attempt) {
      discard_unused_spans();
      release_cached_large();
    }
    std::lock_guard lock(spans.mutex);
    span = find_span(kind);
  }
  if (!span) throw_out_of_memory(kSmallClassBytes[size_class]);
  *span = Span{};
  span->capacity = static_cast<uint32_t>((kSpanBytes[kind] - sizeof(Span)) / kSmallClassBytes[size_class]);
  span->free_count = span->capacity;
  return span;
}

void retire(Span* span, unsigned kind) {
  const size_t bytes = kSpanBytes[kind];
  std::lock_guard lock(spans.mutex);
  if (spans.idle_bytes + bytes > kMaxIdleBytes) {
    discard(span, bytes);
    span->next = spans.discarded[kind];
    spans.discarded[kind] = span;
  } else {
    span->next = spans.resident[kind];
    spans.resident[kind] = span;
    spans.idle_bytes += bytes;
  }
}

// Moves up to `count` blocks to the front of *list.
uint32_t take_from(Span* span, uint32_t block_bytes, uint32_t count, FreeLink** list) {
  uint32_t got = 0;
  for (; got < count && span->free; ++got) {
    FreeLink* block = span->free;
    span->free = block->next;
    block->next = *list;
    *list = block;
  }
  char* first = reinterpret_cast<char*>(span) + sizeof(Span);
  for (; got < count && span->carved < span->capacity; ++got, ++span->carved) {
    FreeLink* block = reinterpret_cast<FreeLink*>(first + size_t{span->carved} * block_bytes);
    block->next = *list;
    *list = block;
  }
  span->free_count -= got;
  return got;
}

}  // namespace

FreeLink* take_small(unsigned size_class, uint32_t count, uint32_t* got) {
  const uint32_t block_bytes = kSmallClassBytes[size_class];
  Class& own = class_of(size_class);
  FreeLink* list = nullptr;
  *got = 0;
  Span* fresh = nullptr;
  while (true) {
    {
      std::lock_guard lock(stripe_of(size_class).mutex);
      if (fresh) link(own.spans, fresh);
      while (*got < count && own.spans) {
        Span* span = own.spans;
        *got += take_from(span, block_bytes, count - *got, &list);
        if (span->free_count == 0) unlink(own.spans, span);
      }
      own.blocks_out += *got;
    }
    if (*got) break;
    fresh = new_span(size_class);
  }
  add_in_use(int64_t{*got} * block_bytes);
  return list;
}

void give_small(unsigned size_class, FreeLink* blocks) noexcept {
  const unsigned kind = span_kind(size_class);
  const uintptr_t mask = ~(uintptr_t{kSpanBytes[kind]} - 1);
  Class& own = class_of(size_class);
  Span* unused = nullptr;
  int64_t count = 0;
  {
    std::lock_guard lock(stripe_of(size_class).mutex);
    while (blocks) {
      FreeLink* block = blocks;
      blocks = block->next;
      ++count;
      Span* span = reinterpret_cast<Span*>(reinterpret_cast<uintptr_t>(block) & mask);
      block->next = span->free;
      span->free = block;
      if (span->free_count++ == 0) link(own.spans, span);
      // The class keeps its last span, so that one block going back and forth does not make and retire spans.
      bool only = !span->next && !span->prev;
      if (span->free_count == span->capacity && !only) {
        unlink(own.spans, span);
        span->next = unused;
        unused = span;
      }
    }
    own.blocks_out -= static_cast<uint64_t>(count);
  }
  while (unused) {
    Span* span = unused;
    unused = span->next;
    retire(span, kind);
  }
  add_in_use(-count * int64_t{kSmallClassBytes[size_class]});
}

uint64_t small_bytes_out(unsigned size_class) {
  std::lock_guard lock(stripe_of(size_class).mutex);
  return class_of(size_class).blocks_out * kSmallClassBytes[size_class];
}

void discard_unused_spans() noexcept {
  for (unsigned c = 0; c < kSmallClasses; ++c) {
    Span* unused = nullptr;
    {
      std::lock_guard lock(stripe_of(c).mutex);
      Class& own = class_of(c);
      for (Span* span = own.spans; span;) {
        Span* next = span->next;
        if (span->free_count == span->capacity) {
          unlink(own.spans, span);
          span->next = unused;
          unused = span;
        }
        span = next;
      }
    }
    while (unused) {
      Span* span = unused;
      unused = span->next;
      retire(span, span_kind(c));
    }
  }
  std::lock_guard lock(spans.mutex);
  for (unsigned kind = 0; kind < 3; ++kind)
    while (Span* span = spans.resident[kind]) {
      spans.resident[kind] = span->next;
      discard(span, kSpanBytes[kind]);
      spans.idle_bytes -= kSpanBytes[kind];
      span->next = spans.discarded[kind];
      spans.discarded[kind] = span;
    }
}

void lock_small_blocks() {
  for (Stripe& stripe : stripes) stripe.mutex.lock();
  spans.mutex.lock();
}

void unlock_small_blocks() {
  spans.mutex.unlock();
  for (Stripe& stripe : stripes) stripe.mutex.unlock();
}

}  // namespace vesta::cpu
