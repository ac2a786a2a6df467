// SPDX-License-Identifier: Apache-2.0
// core/trace: the recorder's ring buffer with a concurrent writer, snapshots of it, and text of arbitrary
// bytes.
#include <algorithm>
#include <atomic>
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "core/base/collective_traits.hpp"
#include "core/base/text_out.hpp"
#include "core/trace/chrome_trace.hpp"
#include "core/trace/histogram.hpp"
#include "core/trace/metrics.hpp"
#include "core/trace/snapshot.hpp"
#include "core/trace/spans.hpp"
#include "core/trace/stragglers.hpp"
#include "tests/unit/counting_memory.hpp"

extern "C" {
#include <cmocka.h>
}
#undef fail  // dist::fail()

namespace dist {
namespace {

constexpr auto kEvents = static_cast<uint32_t>(Recorder::kDefaultEvents);

// An arrival whose fields all follow from the number of its round.
Arrival arrival_of(uint32_t round, int members, const char* tag) {
  return {DIST_COLLECTIVE_ALL_REDUCE,
          DIST_REDUCE_SUM,
          DIST_F32,
          0,
          members,
          round,
          round + 1,
          false,
          round * uint64_t{7},
          tag};
}

void take_part(Recorder& recorder, uint32_t round, int members, const char* tag,
               dist_status status = DIST_OK) {
  recorder.begin(DIST_COLLECTIVE_ALL_REDUCE);
  recorder.open(arrival_of(round, members, tag));
  recorder.arrived();
  recorder.close(status);
}

// Waits until the clock advances, so that the next time is later in nanoseconds.
void let_time_pass() {
  const int64_t start = steady_now_ns();
  while (steady_now_ns() < start + 1000) spin_pause();
}

// Every time has a bucket, whose bounds differ by at most a quarter.
void histogram_has_all_times(void**) {
  Histogram histogram;
  uint64_t sum = 0;
  const auto check = [&](uint64_t ticks) {
    const int place = Histogram::place_of(ticks);
    assert_true(place >= 0 && place < Histogram::kBuckets);
    const uint64_t begin = Histogram::begin_of(place);
    const uint64_t end = Histogram::begin_of(place + 1);
    assert_true(begin <= ticks);
    if (place + 1 < Histogram::kBuckets)
      assert_true(ticks < end && (end - begin) * 4 <= std::max<uint64_t>(begin, 4));
    const uint64_t before = histogram.count(place);
    histogram.add(ticks);
    sum += ticks;
    assert_int_equal(histogram.count(place), before + 1);
    assert_int_equal(histogram.sum(), sum);
  };
  for (uint64_t ticks = 0; ticks < 5000; ++ticks) check(ticks);
  for (int power = 12; power < 64; ++power) {
    for (int offset = -1; offset <= 1; ++offset)
      check((uint64_t{1} << power) + static_cast<uint64_t>(offset));
  }
  check(UINT64_MAX);
  for (int i = 1; i < Histogram::kBuckets; ++i)
    assert_true(Histogram::begin_of(i) > Histogram::begin_of(i - 1));
}

void keeps_the_latest(uint32_t length) {
  CountingMemory memory;
  FlightRecorder flight(*memory, ReplicaCount(2), {}, static_cast<int32_t>(length));
  assert_int_equal(flight.length(), length);
  assert_int_equal(flight.bytes(), 2 * (sizeof(Recorder) + length * sizeof(Recorder::Slot)));
  assert_int_equal(flight.bytes(), (*memory).held() - sizeof(Memory));
  for (uint32_t n : {1u, length - 1, length, 2 * length + 5}) {
    const uint64_t before = flight[LocalReplica{1}].count();
    for (uint32_t i = 0; i < n; ++i)
      take_part(flight[LocalReplica{1}], static_cast<uint32_t>(before) + i, 2, "");
    const uint64_t count = flight[LocalReplica{1}].count();
    assert_int_equal(count, before + n);
    const Snapshot snapshot(flight, *memory);
    const std::size_t kept = count < length ? count : length;
    assert_int_equal(snapshot.events().size(), kept);
    for (std::size_t i = 0; i < kept; ++i) {
      const Event& event = snapshot.events()[i];
      assert_int_equal(event.replica, 1);
      assert_int_equal(event.round, count - kept + i);
      assert_int_equal(event.bytes, uint64_t{7} * event.round);
      assert_true(event.over && event.begin_ns <= event.arrived_ns && event.arrived_ns <= event.end_ns);
      if (i != 0) assert_true(snapshot.events()[i - 1].end_ns <= event.begin_ns);
    }
    Recorder::Slot slot;
    if (count > length) assert_false(flight[LocalReplica{1}].read(count - length - 1, slot));
    assert_false(flight[LocalReplica{1}].read(count, slot));
  }
  assert_int_equal(flight[LocalReplica{1}].kind(DIST_COLLECTIVE_ALL_REDUCE).calls.get(),
                   flight[LocalReplica{1}].count());
  assert_int_equal(flight[LocalReplica{0}].count(), 0);
}

void ring_keeps_the_latest(void**) {
  for (const uint32_t length : {1u, 2u, 64u, kEvents, 8 * kEvents}) keeps_the_latest(length);
  CountingMemory memory;
  assert_int_equal(FlightRecorder(*memory, ReplicaCount(1)).length(), kEvents);
  // With several workers, the actions of this one outside its replicas have a ring too.
  FlightRecorder flight(*memory, ReplicaCount(1), {0, 2}, 64);
  for (uint32_t i = 0; i < 100; ++i) take_part(*flight.outside(), i, 1, "");
  assert_int_equal(flight.bytes(), 2 * (sizeof(Recorder) + 64 * sizeof(Recorder::Slot)));
  assert_int_equal(Snapshot(flight, *memory).events().size(), 64);
}

void append(const char* text, std::size_t size, void* user_data) {
  static_cast<std::string*>(user_data)->append(text, size);
}

int count_of(const std::string& text, const char* words) {
  int count = 0;
  for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++count;
  return count;
}

// Returns the bytes that reading a full ring of this length allocates. All rounds must be present.
std::size_t read_full_ring(uint32_t length) {
  CountingMemory memory;
  FlightRecorder flight(*memory, ReplicaCount(2), {}, static_cast<int32_t>(length));
  for (uint32_t i = 0; i < length + 3; ++i) {
    for (int r = 0; r < 2; ++r) take_part(flight[LocalReplica{r}], i, 2, i % 3 == 0 ? "third" : "");
  }
  const std::size_t before = (*memory).held();
  const Snapshot snapshot(flight, *memory);
  const std::size_t taken = (*memory).held() - before;
  assert_int_equal(snapshot.events().size(), 2 * length);
  assert_int_equal(snapshot.rounds().size(), length);
  int64_t rounds = 0;
  for (const Straggler& row : stragglers(snapshot, *memory)) rounds += row.times_last;
  assert_int_equal(rounds, length);
  std::string trace;
  TextOut out(append, &trace);
  write_chrome_trace(snapshot, {}, out);
  out.flush();
  assert_int_equal(count_of(trace, "\"name\":\"all_reduce\""), 2 * length);
  return taken;
}

void reading_grows_with_the_ring(void**) {
  const std::size_t less = read_full_ring(kEvents);
  for (const uint32_t times : {4u, 32u}) {
    const std::size_t more = read_full_ring(times * kEvents);
    assert_true(more <= times * less && more >= times * less / 2);
  }
}

void fields_come_back(void**) {
  CountingMemory memory;
  FlightRecorder flight(*memory, ReplicaCount(1));
  std::string tag;
  for (uint32_t length = 0; length < DIST_MAX_TAG_BYTES; ++length) {
    tag = std::string(length, static_cast<char>('a' + length % 26));
    take_part(flight[LocalReplica{0}], length, 1, tag.c_str(), static_cast<dist_status>(length % 16));
  }
  const Snapshot snapshot(flight, *memory);
  assert_int_equal(snapshot.events().size(), DIST_MAX_TAG_BYTES);
  for (uint32_t length = 0; length < DIST_MAX_TAG_BYTES; ++length) {
    const Event& event = snapshot.events()[length];
    assert_string_equal(event.tag, std::string(length, static_cast<char>('a' + length % 26)).c_str());
    assert_int_equal(event.status, length % 16);
    assert_int_equal(event.collective, DIST_COLLECTIVE_ALL_REDUCE);
    assert_int_equal(event.op, DIST_REDUCE_SUM);
    assert_int_equal(event.dtype, DIST_F32);
    assert_int_equal(event.members, 1);
    assert_int_equal(event.sequence, length + 1);
    assert_false(event.asynchronous);
  }
}

void what_has_begun_is_seen(void**) {
  CountingMemory memory;
  FlightRecorder flight(*memory, ReplicaCount(2));
  flight[LocalReplica{0}].begin_run();
  flight[LocalReplica{0}].begin(DIST_COLLECTIVE_BARRIER);
  flight[LocalReplica{0}].open(arrival_of(3, 2, "here"));
  {
    const Snapshot snapshot(flight, *memory);
    assert_int_equal(snapshot.events().size(), 2);
    assert_false(snapshot.events()[0].over);
    assert_int_equal(snapshot.events()[1].collective, DIST_COLLECTIVE_RETURN);
    assert_false(snapshot.events()[1].over);
    assert_int_equal(snapshot.rounds().size(), 1);
    assert_false(snapshot.rounds()[0].complete());
    assert_int_equal(stragglers(snapshot, *memory).size(), 0);
  }
  // The run ends inside the collective, which ends with it.
  flight[LocalReplica{0}].end_run(DIST_ABORTED);
  const Snapshot snapshot(flight, *memory);
  assert_int_equal(snapshot.events().size(), 2);
  for (const Event& event : snapshot.events()) {
    assert_true(event.over);
    assert_int_equal(event.status, DIST_ABORTED);
    assert_int_equal(event.run, 1);
  }
  assert_int_equal(flight[LocalReplica{0}].runs().get(), 1);
  assert_int_equal(flight[LocalReplica{0}].run_errors(DIST_ABORTED).get(), 1);
  assert_int_equal(flight[LocalReplica{0}].errors(DIST_ABORTED).get(), 1);
}

void a_refused_call_meets_nobody(void**) {
  CountingMemory memory;
  FlightRecorder flight(*memory, ReplicaCount(1));
  flight[LocalReplica{0}].begin(DIST_COLLECTIVE_SCAN);
  flight[LocalReplica{0}].close(DIST_INVALID_ARGUMENT);
  take_part(flight[LocalReplica{0}], 1, 1, "", static_cast<dist_status>(99));
  const Snapshot snapshot(flight, *memory);
  assert_int_equal(snapshot.events().size(), 2);
  assert_int_equal(snapshot.events()[0].collective, DIST_COLLECTIVE_SCAN);
  assert_int_equal(snapshot.events()[0].members, 0);
  assert_int_equal(snapshot.rounds().size(), 1);
  assert_int_equal(flight[LocalReplica{0}].kind(DIST_COLLECTIVE_SCAN).calls.get(), 0);
  assert_int_equal(flight[LocalReplica{0}].errors(DIST_INVALID_ARGUMENT).get(), 1);
  assert_int_equal(flight[LocalReplica{0}].errors(DIST_UNKNOWN).get(),
                   1);  // a status without a counter of its own
}

void asynchronous_ones_overlap(void**) {
  CountingMemory memory;
  FlightRecorder flight(*memory, ReplicaCount(1));
  Arrival arrival = arrival_of(1, 1, "later");
  arrival.asynchronous = true;
  const uint64_t first = flight[LocalReplica{0}].issue(arrival);
  arrival.round = 2;
  const uint64_t second = flight[LocalReplica{0}].issue(arrival);
  // Asynchronous collectives have a separate series of numbers.
  take_part(flight[LocalReplica{0}], 1, 1, "blocking");
  flight[LocalReplica{0}].complete(second, DIST_OK);
  {
    const Snapshot snapshot(flight, *memory);
    assert_int_equal(snapshot.events().size(), 3);
    assert_int_equal(snapshot.rounds().size(), 3);
    assert_false(snapshot.events()[0].over);
    assert_true(snapshot.events()[1].over && snapshot.events()[1].asynchronous);
    assert_false(snapshot.events()[2].asynchronous);
  }
  for (uint32_t i = 0; i < kEvents; ++i) take_part(flight[LocalReplica{0}], 10 + i, 1, "");
  flight[LocalReplica{0}].complete(first, DIST_OK);  // its slot has been reused
  const Snapshot snapshot(flight, *memory);
  assert_int_equal(snapshot.events().size(), kEvents);
  for (const Event& event : snapshot.events()) assert_false(event.asynchronous);
}

// One thread writes and others read. Readers see only complete events.
void readers_see_whole_events(void**) {
  CountingMemory memory;
  FlightRecorder flight(*memory, ReplicaCount(1));
  constexpr uint32_t kWrites = 40 * kEvents;
  std::atomic<bool> wrong{false};
  std::atomic<uint64_t> seen{0};
  std::atomic<bool> done{false};
  const auto read_all = [&] {
    while (!done.load()) {
      Recorder::Slot slot;
      const uint64_t end = flight[LocalReplica{0}].count();
      for (uint64_t i = end > kEvents ? end - kEvents : 0; i < end; ++i) {
        if (!flight[LocalReplica{0}].read(i, slot)) continue;
        seen.fetch_add(1);
        char tag[DIST_MAX_TAG_BYTES];
        std::memcpy(tag, &slot[Recorder::kTag], sizeof tag);
        const auto round = static_cast<uint32_t>(slot[Recorder::kRound] >> 32);
        char expected[DIST_MAX_TAG_BYTES];
        std::snprintf(expected, sizeof expected, "the tag of round number %u", round);
        if (round != i || slot[Recorder::kBytes] != i * 7 || std::strcmp(tag, expected) != 0) wrong = true;
        if (slot[Recorder::kEnd] != 0 && slot[Recorder::kEnd] < slot[Recorder::kArrived]) wrong = true;
      }
    }
  };
  std::thread readers[] = {std::thread(read_all), std::thread(read_all)};
  for (uint32_t i = 0; i < kWrites; ++i) {
    char tag[DIST_MAX_TAG_BYTES];
    std::snprintf(tag, sizeof tag, "the tag of round number %u", i);
    take_part(flight[LocalReplica{0}], i, 1, tag);
  }
  while (seen.load() == 0) std::this_thread::yield();
  done = true;
  for (std::thread& reader : readers) reader.join();
  assert_false(wrong.load());
}

void the_last_to_come_is_found(void**) {
  CountingMemory memory;
  FlightRecorder flight(*memory, ReplicaCount(3));
  // The order of arrival, and the tag.
  const struct {
    int order[3];
    const char* tag;
    dist_status status;
  } rounds[] = {
      {{0, 1, 2}, "a", DIST_OK}, {{1, 0, 2}, "a", DIST_OK},      {{2, 1, 0}, "a", DIST_OK},
      {{0, 2, 1}, "b", DIST_OK}, {{0, 1, 2}, "b", DIST_ABORTED},
  };
  uint32_t sequence = 0;
  for (const auto& round : rounds) {
    ++sequence;
    for (const int r : round.order) {
      flight[LocalReplica{r}].begin(DIST_COLLECTIVE_ALL_REDUCE);
      flight[LocalReplica{r}].open(arrival_of(sequence, 3, round.tag));
      let_time_pass();
    }
    for (int r = 0; r < 3; ++r) flight[LocalReplica{r}].close(round.status);
  }
  take_part(flight[LocalReplica{0}], 100, 3, "a");  // the other members do not arrive
  const Snapshot snapshot(flight, *memory);
  const auto rows = stragglers(snapshot, *memory);
  const struct {
    const char* tag;
    int replica;
    int rounds;
    int times_last;
  } expected[] = {{"a", 2, 3, 2}, {"", 0, 3, 1}, {"", 1, 1, 1}};
  assert_int_equal(rows.size(), 3);
  for (std::size_t i = 0; i < 3; ++i) {
    // Rows with equal counts are ordered by time, which this test does not know.
    const auto& row = rows[i];
    const auto& want = i == 0 ? expected[0] : number(row.replica) == 0 ? expected[1] : expected[2];
    assert_string_equal(row.tag, number(row.replica) == 1 ? "b" : "a");
    assert_int_equal(number(row.replica), want.replica);
    assert_int_equal(row.rounds, want.rounds);
    assert_int_equal(row.times_last, want.times_last);
    assert_true(row.max_late_ns >= 500);
    assert_true(row.late_ns >= row.max_late_ns);
  }
  assert_true(rows[1].replica != rows[2].replica);
}

void labels_of_any_length_and_bytes(void**) {
  CountingMemory memory;
  const FlightRecorder flight(*memory, ReplicaCount(1));
  const std::string euro = "\xE2\x82\xAC";
  std::string name = "x";
  std::string expected = "x";
  for (int i = 0; i < 100; ++i) name += euro, expected += euro;
  name += "\"\\\n";
  expected += "\\\"\\\\\\n";
  for (int i = 0; i < 100; ++i) name += "\x80", expected += "\xEF\xBF\xBD";
  std::string page;
  TextOut out(append, &page);
  write_metrics(flight, {name.c_str(), "1", "S", 5}, out);
  out.flush();
  assert_non_null(std::strstr(page.c_str(), ("dist_replicas{strategy=\"" + expected + "\"} 1\n").c_str()));
  assert_non_null(std::strstr(page.c_str(), "\",replica=\"0\"} 0\n"));
}

void every_collective_is_counted(void**) {
  CountingMemory memory;
  FlightRecorder flight(*memory, ReplicaCount(1));
  Recorder& recorder = flight[LocalReplica{0}];
  for (int32_t collective = DIST_COLLECTIVE_ALL_REDUCE; collective <= static_cast<int32_t>(kLastCollective);
       ++collective) {
    Arrival arrival = arrival_of(static_cast<uint32_t>(collective), 1, "");
    arrival.collective = collective;
    recorder.begin(collective);
    recorder.open(arrival);
    recorder.close(DIST_OK);
  }
  std::string page;
  TextOut out(append, &page);
  write_metrics(flight, {"x", "1", "S", 5}, out);
  out.flush();
  for (int32_t collective = DIST_COLLECTIVE_ALL_REDUCE; collective <= static_cast<int32_t>(kLastCollective);
       ++collective) {
    const std::string label = std::string("collective=\"") + collective_name(collective) + "\"} 1\n";
    if (std::strstr(page.c_str(), label.c_str()) == nullptr) std::printf("# %s\n", label.c_str());
    assert_non_null(std::strstr(page.c_str(), label.c_str()));
  }
}

void sums_never_go_back(void**) {
  CountingMemory memory;
  const FlightRecorder flight(*memory, ReplicaCount(1));
  uint64_t last = 0;
  for (int i = 0; i < 1000; ++i) {
    const uint64_t now = flight.sum_ns(uint64_t{1} << 40);
    assert_true(i == 0 || now == last);
    last = now;
  }
}

void lack_of_memory_leaves_nothing(void**) {
  CountingMemory memory;
  for (long k = 0;; ++k) {
    memory.refuse(k);
    bool refused = false;
    try {
      FlightRecorder flight(*memory, ReplicaCount(3));
      for (int r = 0; r < 3; ++r) take_part(flight[LocalReplica{r}], 1, 3, "tag");
      const Snapshot snapshot(flight, *memory);
      assert_int_equal(stragglers(snapshot, *memory).size(), 1);
    } catch (const std::bad_alloc&) {
      refused = true;
    }
    memory.refuse(-1);
    assert_int_equal(memory.live(), 0);
    assert_int_equal(memory.mistakes(), 0);
    assert_int_equal(refused, memory.refused());
    if (!refused) break;
  }
}

// If there are more spans than room, the latest remain, in order, and writing them allocates nothing.
void the_latest_spans_stay(void**) {
  CountingMemory memory;
  {
    SpanLog log(*memory);
    constexpr auto kMost = static_cast<int64_t>(SpanLog::kMost);
    for (const int64_t written : {int64_t{3}, kMost, kMost + 5, 3 * kMost - 1}) {
      const std::pmr::vector<Span> before = log.copy(*memory);
      for (int64_t id = before.empty() ? 0 : before.back().id + 1; id < written; ++id) {
        if (id == kMost) memory.refuse(0);
        log.add({.id = id});
      }
      assert_false(memory.refused());
      memory.refuse(-1);
      const std::pmr::vector<Span> spans = log.copy(*memory);
      const int64_t first = written > kMost ? written - kMost : 0;
      assert_int_equal(spans.size(), written - first);
      for (std::size_t i = 0; i < spans.size(); ++i)
        assert_int_equal(spans[i].id, first + static_cast<int64_t>(i));
    }
  }
  assert_int_equal(memory.live(), 0);
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(histogram_has_all_times),       cmocka_unit_test(ring_keeps_the_latest),
      cmocka_unit_test(reading_grows_with_the_ring),   cmocka_unit_test(fields_come_back),
      cmocka_unit_test(what_has_begun_is_seen),        cmocka_unit_test(a_refused_call_meets_nobody),
      cmocka_unit_test(asynchronous_ones_overlap),     cmocka_unit_test(readers_see_whole_events),
      cmocka_unit_test(the_last_to_come_is_found),     cmocka_unit_test(labels_of_any_length_and_bytes),
      cmocka_unit_test(every_collective_is_counted),   cmocka_unit_test(sums_never_go_back),
      cmocka_unit_test(lack_of_memory_leaves_nothing), cmocka_unit_test(the_latest_spans_stay),
  };
  return cmocka_run_group_tests_name("trace", tests, nullptr, nullptr);
}
