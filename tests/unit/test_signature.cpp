// SPDX-License-Identifier: Apache-2.0
// core/comm/signature: the diagnosis of a failed collective, as a pure function.
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "core/comm/signature.hpp"

extern "C" {
#include <cmocka.h>
}
#undef fail  // dist::fail()

namespace dist {
namespace {

Signature all_reduce(int64_t length, const char* tag) {
  Signature signature;
  signature.collective = Collective::kAllReduce;
  signature.op = DIST_REDUCE_SUM;
  signature.dtype = DIST_F32;
  signature.ndim = 1;
  signature.shape[0] = length;
  signature.tensors = 1;
  signature.elements = length;
  signature.digest = mix(0, static_cast<uint64_t>(length));
  close_digest(signature, tag);
  return signature;
}

Signature barrier() {
  Signature signature;
  signature.collective = Collective::kBarrier;
  close_digest(signature, nullptr);
  return signature;
}

Signature has_left(dist_status returned) {
  Signature signature;
  signature.collective = Collective::kReturn;
  signature.returned = returned;
  close_digest(signature, nullptr);
  return signature;
}

// The signature of a tensor that is divided into rows of tiles. `secret` changes the digest but is not
// described.
Signature on_tiles(Collective collective, int64_t rows, uint64_t secret) {
  Signature signature;
  signature.collective = collective;
  signature.dtype = DIST_F64;
  signature.ndim = 2;
  signature.shape[0] = rows;
  signature.shape[1] = 1;
  signature.digest = mix(secret, static_cast<uint64_t>(rows));
  close_digest(signature, nullptr);
  return signature;
}

// A NULL member has not arrived. `failures` belong to members that have left.
struct Case {
  std::vector<const Signature*> members;
  std::vector<const ErrorRecord*> failures;
  Trouble trouble = Trouble::kDisagreement;
  int64_t waited_ns = 0;
  int64_t allowed_ns = 0;
  Naming naming;
  const char* state = "";

  explicit Case(std::vector<const Signature*> given)
      : members(std::move(given)), failures(members.size(), nullptr) {}
  Evidence evidence() const {
    return {trouble, members, failures, nullptr, 0, 12, waited_ns, allowed_ns, naming, nullptr, state};
  }
  bool decidable() const { return dist::decidable(evidence()); }
  ErrorRecord diagnosis() const {
    ErrorRecord error = dist::diagnosis(evidence());
    copy_plain(error.message, error.message);
    copy_plain(error.hint, error.hint);
    return error;
  }
};

void has(const char* text, const char* words) {
  if (std::strstr(text, words) == nullptr) print_error("no '%s' in '%s'\n", words, text);
  assert_non_null(std::strstr(text, words));
}

void the_minority_is_to_blame(void**) {
  const Signature a = all_reduce(3, "grads");
  const Signature b = all_reduce(4, "grads");
  for (std::size_t odd = 0; odd < 5; ++odd) {
    Case c({&a, &a, &a, &a, &a});
    c.members[odd] = &b;
    const ErrorRecord error = c.diagnosis();
    assert_int_equal(error.code, DIST_INVALID_ARGUMENT);
    assert_int_equal(number(error.culprit.replica), odd);
    assert_int_equal(error.collective, DIST_COLLECTIVE_ALL_REDUCE);
    assert_int_equal(error.sequence, 12);
    assert_string_equal(error.tag, "grads");
    assert_string_equal(error.expected, "all_reduce SUM f32[3]");
    assert_string_equal(error.received, "all_reduce SUM f32[4]");
    has(error.message, "all_reduce #12 (tag \"grads\")");
    assert_true(error.hint[0] != '\0');
  }
}

void the_report_is_about_what_most_came_for(void**) {
  const Signature few = barrier();
  const Signature most = all_reduce(3, "step");
  const ErrorRecord error = Case({&few, &most, &most}).diagnosis();
  assert_int_equal(number(error.culprit.replica), 0);
  assert_int_equal(error.collective, DIST_COLLECTIVE_ALL_REDUCE);
  assert_string_equal(error.tag, "step");
  has(error.message, "replica 0 called barrier without a tag");
  has(error.message, "replicas 1-2 called all_reduce with tag \"step\"");
}

void a_tie_goes_to_the_lowest_id(void**) {
  const Signature a = all_reduce(3, nullptr);
  const Signature b = barrier();
  ErrorRecord error = Case({&a, &b}).diagnosis();
  assert_int_equal(number(error.culprit.replica), 1);
  assert_string_equal(error.expected, "all_reduce SUM f32[3]");
  assert_string_equal(error.received, "barrier");
  error = Case({&a, &b, &b, &a}).diagnosis();
  assert_int_equal(number(error.culprit.replica), 1);
  has(error.message, "replicas 1-2 called barrier, but replicas 0, 3 called all_reduce");
}

void tags_that_differ_are_named(void**) {
  const Signature a = all_reduce(3, "weights");
  const Signature b = all_reduce(3, "biases");
  const ErrorRecord error = Case({&a, &a, &b}).diagnosis();
  assert_int_equal(number(error.culprit.replica), 2);
  has(error.expected, "tag \"weights\"");
  has(error.received, "tag \"biases\"");
}

void what_is_cut_into_tiles_is_described(void**) {
  const Signature halo = on_tiles(Collective::kHaloExchange, 4, 1);
  const Signature grid = on_tiles(Collective::kHaloExchange, 2, 1);
  ErrorRecord error = Case({&halo, &grid, &halo}).diagnosis();
  assert_string_equal(error.expected, "halo_exchange of f64 in a grid of [4, 1]");
  assert_string_equal(error.received, "halo_exchange of f64 in a grid of [2, 1]");
  const Signature wider = on_tiles(Collective::kHaloExchange, 4, 2);
  error = Case({&halo, &wider, &halo}).diagnosis();
  assert_string_equal(error.received,
                      "halo_exchange of f64 in a grid of [4, 1], but with other widths or edges");
  const Signature reshard = on_tiles(Collective::kReshard, 8, 1);
  const Signature otherwise = on_tiles(Collective::kReshard, 8, 2);
  error = Case({&reshard, &reshard, &otherwise}).diagnosis();
  assert_string_equal(error.expected, "reshard of [8, 1]");
  assert_string_equal(error.received, "reshard of [8, 1], but with other partitions");
}

void who_left_is_to_blame(void**) {
  const Signature a = all_reduce(3, "grads");
  const Signature b = barrier();
  const Signature early = has_left(DIST_OK);
  const Signature failed = has_left(DIST_NOT_FOUND);
  ErrorRecord why;
  copy_text(why.message, "no row 7");
  ErrorRecord error = Case({&a, &b, &early, &a}).diagnosis();  // before a disagreement
  assert_int_equal(error.code, DIST_ABORTED);
  assert_int_equal(number(error.culprit.replica), 2);
  has(error.message, "replica 2 returned early");
  assert_string_equal(error.received, "returned OK");

  Case c({&a, &early, &a, &failed});
  c.failures[3] = &why;
  error = c.diagnosis();  // a failure before an early return
  assert_int_equal(number(error.culprit.replica), 3);
  has(error.message, "replica 3 failed with NOT_FOUND: no row 7");
  assert_int_equal(error.collective, DIST_COLLECTIVE_ALL_REDUCE);
  c.failures[3] = nullptr;
  has(c.diagnosis().message, "it gave no reason");
}

void logical_devices_are_called_so(void**) {
  const Signature a = all_reduce(3, "grads");
  const Signature b = barrier();
  Case c({&a, &b, &a, nullptr});
  assert_int_equal(c.diagnosis().culprit.logical_device, -1);
  c.naming.whole = GlobalReplica{5};
  const ErrorRecord error = c.diagnosis();
  assert_int_equal(number(error.culprit.replica), 5);
  assert_int_equal(error.culprit.logical_device, 1);
  has(error.message, "logical device 1 called");
  has(error.message, "logical devices 0, 2 called all_reduce");
  has(error.message, "logical device 3: did not arrive");
  has(error.hint, "All logical devices");
}

void when_it_can_be_decided(void**) {
  const Signature a = all_reduce(3, nullptr);
  const Signature b = barrier();
  const Signature left = has_left(DIST_OK);
  assert_false(Case({&a, &b, nullptr}).decidable());
  assert_true(Case({&a, &b}).decidable());                   // all have arrived
  assert_true(Case({&a, &a, &b, nullptr, &a}).decidable());  // more than half agree
  assert_false(Case({&a, &a, &b, nullptr}).decidable());     // half is not more than half
  assert_true(Case({&a, nullptr, nullptr, &left}).decidable());
}

void a_deadline_names_who_is_missing(void**) {
  const Signature a = all_reduce(3, "grads");
  Case c({&a, nullptr, &a, nullptr, nullptr});
  c.trouble = Trouble::kDeadline;
  c.waited_ns = 1'500'000'000;
  ErrorRecord error = c.diagnosis();
  assert_int_equal(error.code, DIST_DEADLINE_EXCEEDED);
  assert_int_equal(number(error.culprit.replica), 1);
  has(error.message, "replicas 1, 3-4 did not arrive within 1.5 s");
  has(error.message, "replicas 0, 2: all_reduce");
  assert_string_equal(error.received, "did not arrive");

  Case nobody({&a, &a});  // all members arrived at the last moment
  nobody.trouble = Trouble::kDeadline;
  assert_int_equal(number(nobody.diagnosis().culprit.replica), -1);
}

void a_runs_deadline_is_told_as_such(void**) {
  const Signature a = all_reduce(3, "grads");
  Case c({&a, nullptr, &a});
  c.trouble = Trouble::kRunDeadline;
  c.allowed_ns = 1'000'000;
  c.waited_ns = 62'000;
  const ErrorRecord error = c.diagnosis();
  assert_int_equal(error.code, DIST_DEADLINE_EXCEEDED);
  assert_int_equal(number(error.culprit.replica), 1);
  has(error.message,
      "the run's deadline of 1 ms expired after 62 us of waiting here: replica 1 did not arrive");
  has(error.hint, "give the run a longer timeout_ns");
}

void cancelling_blames_nobody(void**) {
  const Signature a = all_reduce(3, "grads");
  Case c({&a, nullptr});
  c.trouble = Trouble::kCancelled;
  ErrorRecord error = c.diagnosis();
  assert_int_equal(error.code, DIST_CANCELLED);
  assert_int_equal(number(error.culprit.replica), -1);
  has(error.message, "dist_strategy_cancel()");
  Case nothing({});
  nothing.trouble = Trouble::kCancelled;
  assert_int_equal(nothing.diagnosis().code, DIST_CANCELLED);
}

// The complete messages for the most common mistakes.
void messages_say_what_failed_and_what_to_do(void**) {
  const Signature a = all_reduce(3, "grads");
  const Signature longer = all_reduce(4, "grads");
  const Signature biases = all_reduce(3, "biases");
  const Signature untagged = all_reduce(3, nullptr);
  const Signature b = barrier();
  const Signature early = has_left(DIST_OK);
  const Signature failed = has_left(DIST_NOT_FOUND);
  assert_string_equal(
      Case({&a, &longer}).diagnosis().message,
      "all_reduce #12 (tag \"grads\"): replica 1 passed f32[4], but replica 0 passed f32[3]. All "
      "replicas must pass the same dtype and shape.");
  assert_string_equal(
      Case({&untagged, &b, &untagged}).diagnosis().message,
      "all_reduce #12: replica 1 called barrier, but replicas 0, 2 called all_reduce SUM f32[3]. "
      "All replicas must call the same collectives in the same order, with the same arguments.");
  assert_string_equal(Case({&a, &biases, &a, nullptr}).diagnosis().message,
                      "all_reduce #12 (tag \"grads\"): replica 1 called all_reduce with tag \"biases\", but "
                      "replicas 0, 2 called all_reduce with tag \"grads\". All replicas must call the same "
                      "collectives in the same order, with the same arguments. Details: replica 3: did "
                      "not arrive");
  assert_string_equal(
      Case({&a, &early, nullptr}).diagnosis().message,
      "all_reduce #12 (tag \"grads\"): replica 1 returned early. All replicas must call the same "
      "collectives; a replica without input takes part with an empty batch. Details: replica 0: "
      "all_reduce SUM f32[3] (tag \"grads\"); replica 2: did not arrive");
  Case c({&a, &failed});
  ErrorRecord why;
  copy_text(why.message, "no row 7");
  c.failures[1] = &why;
  assert_string_equal(
      c.diagnosis().message,
      "all_reduce #12 (tag \"grads\"): replica 1 failed with NOT_FOUND: no row 7. Details: replica "
      "0: all_reduce SUM f32[3] (tag \"grads\"); replica 1: returned NOT_FOUND");
  Case late({&a, nullptr});
  late.trouble = Trouble::kDeadline;
  late.waited_ns = 1'500'000'000;
  assert_string_equal(
      late.diagnosis().message,
      "all_reduce #12 (tag \"grads\"): replica 1 did not arrive within 1.5 s. Find out what delays "
      "that replica before this call, or give a longer timeout_ns. Details: replica 0: all_reduce "
      "SUM f32[3] (tag \"grads\")");
}

// If 200 replicas alternate, their names must not displace the reason.
void many_names_leave_room_for_the_reason(void**) {
  const Signature a = all_reduce(3, nullptr);
  const Signature b = all_reduce(4, nullptr);
  std::vector<const Signature*> members;
  for (int i = 0; i < 100; ++i) members.insert(members.end(), {&a, &b});
  assert_string_equal(
      Case(members).diagnosis().message,
      "all_reduce #12: replicas 1, 3, 5, 7, 9, 11, 13, 15 and 92 more passed f32[4], but replicas "
      "0, 2, 4, 6, 8, 10, 12, 14 and 92 more passed f32[3]. All replicas must pass the same dtype "
      "and shape.");
}

// The lines of 60 members fill the message, but come after what is known about the missing one.
void many_members_leave_room_for_the_state(void**) {
  std::vector<Signature> signatures;
  for (int64_t i = 0; i < 60; ++i) signatures.push_back(all_reduce(i, "a tag that is not short"));
  std::vector<const Signature*> members(1, nullptr);
  for (const Signature& each : signatures) members.push_back(&each);
  Case c(members);
  c.trouble = Trouble::kDeadline;
  c.waited_ns = 1'500'000'000;
  c.state = "its certificate has expired";
  const ErrorRecord error = c.diagnosis();
  has(error.message,
      "replica 0 did not arrive within 1.5 s. Last known state: its certificate has expired. Find out what "
      "delays "
      "that replica before this call, or give a longer timeout_ns. Details: replica 1: all_reduce");
  assert_true(std::strlen(error.message) > sizeof error.message - 5);
}

// Texts of any length are cut between characters.
void long_texts_are_cut_between_characters(void**) {
  const auto whole = [](const char* text, std::size_t size) {
    const std::size_t length = std::strlen(text);
    assert_true(length < size);
    for (std::size_t i = 0; i < length;) {
      const auto lead = static_cast<unsigned char>(text[i]);
      const std::size_t bytes = lead < 0x80 ? 1 : lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
      assert_true(lead < 0x80 || lead >= 0xC0);
      assert_true(i + bytes <= length);
      i += bytes;
    }
  };
  for (std::size_t shift = 0; shift < 4; ++shift) {
    std::vector<Signature> signatures;
    for (int64_t i = 0; i < 60; ++i) {
      std::string tag(shift, 'x');
      while (tag.size() < 60) tag += "\xF0\x9F\x90\x88";
      signatures.push_back(all_reduce(i, tag.c_str()));
      whole(signatures.back().tag, sizeof signatures.back().tag);
    }
    std::vector<const Signature*> members;
    for (const Signature& signature : signatures) members.push_back(&signature);
    const ErrorRecord error = Case(members).diagnosis();
    assert_true(std::strlen(error.message) > 1000);
    whole(error.message, sizeof error.message);
    whole(error.expected, sizeof error.expected);
    whole(error.received, sizeof error.received);
    char small[20];
    for (std::size_t size = 1; size <= sizeof small; ++size) {
      describe(signatures[7], small, size);
      assert_true(std::strlen(small) < size);
    }
  }
}

void signatures_tell_fields_apart(void**) {
  const Signature plain = all_reduce(3, "a");
  assert_int_equal(plain.digest, all_reduce(3, "a").digest);
  assert_int_not_equal(plain.digest, all_reduce(4, "a").digest);
  assert_int_not_equal(plain.digest, all_reduce(3, "b").digest);
  assert_int_not_equal(plain.digest, all_reduce(3, nullptr).digest);
  assert_int_not_equal(plain.digest, barrier().digest);
  // All members that have left agree, regardless of how their functions ended.
  assert_int_equal(has_left(DIST_OK).digest, has_left(DIST_NOT_FOUND).digest);

  // Within a process, functions are distinguished by their addresses. Processes compare everything else.
  Signature here = all_reduce(3, "a");
  Signature there = here;
  here.digest = there.digest = 7;
  here.function = &here;
  there.function = &there;
  close_digest(here, "a");
  close_digest(there, "a");
  assert_int_not_equal(here.digest, there.digest);
  assert_int_equal(here.shared_digest, there.shared_digest);
  close_digest(there, "b");
  assert_int_not_equal(here.shared_digest, there.shared_digest);
}

}  // namespace
}  // namespace dist

int main() {
  using namespace dist;
  const CMUnitTest tests[] = {
      cmocka_unit_test(the_minority_is_to_blame),
      cmocka_unit_test(the_report_is_about_what_most_came_for),
      cmocka_unit_test(a_tie_goes_to_the_lowest_id),
      cmocka_unit_test(tags_that_differ_are_named),
      cmocka_unit_test(what_is_cut_into_tiles_is_described),
      cmocka_unit_test(who_left_is_to_blame),
      cmocka_unit_test(logical_devices_are_called_so),
      cmocka_unit_test(when_it_can_be_decided),
      cmocka_unit_test(a_deadline_names_who_is_missing),
      cmocka_unit_test(a_runs_deadline_is_told_as_such),
      cmocka_unit_test(cancelling_blames_nobody),
      cmocka_unit_test(messages_say_what_failed_and_what_to_do),
      cmocka_unit_test(many_names_leave_room_for_the_reason),
      cmocka_unit_test(many_members_leave_room_for_the_state),
      cmocka_unit_test(long_texts_are_cut_between_characters),
      cmocka_unit_test(signatures_tell_fields_apart),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
