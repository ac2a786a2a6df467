// SPDX-License-Identifier: Apache-2.0
// test_transcripts FILE: plays a file of transcripts, and tests that the player detects errors.
#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>

extern "C" {
#include <cmocka.h>
}

#include "literals.hpp"
#include "player.hpp"
#include "tests/golden/harness/json.hpp"

namespace golden::transcript {
namespace {

constexpr std::size_t kShown = 10;  // maximum number of printed faults per area

using Cases = std::vector<std::unique_ptr<Case>>;

struct Area {
  std::string name;
  std::vector<const Case*> cases;
};

void all_is_as_written(void** state) {
  const Area& area = *static_cast<const Area*>(*state);
  std::size_t wrong = 0;
  for (const Case* one : area.cases) {
    const std::vector<std::string> faults = Player(*one).play();
    if (!faults.empty() && ++wrong <= kShown) print_error("%s\n", faults[0].c_str());
  }
  if (wrong != 0) fail_msg("%zu of %zu cases went another way", wrong, area.cases.size());
}

// ---- A small correct program, and possible errors in it

constexpr char kProgram[] =
    "dist-transcripts\t1\n"
    "case\texample\tMirroredStrategy2/sum\n"
    "0\tstrategy_create\toptions.num_replicas=2\t->\tstatus=0\tout=s1\n"
    "0\trun_values\tstrategy=s1\tfn=1\t->\tstatus=0\tout=v1\tout.is=(per_replica f32::00004040 "
    "f32::00004040)\n"
    "1\treplica\treplica=r1\tid=0\t->\tstatus=0\tresult=v2\n"
    "2\tvalue_create_tensor\tstrategy=s1\ttensor=f32::0000803f\t->\tstatus=0\tout=v3\tout.is=f32::0000803f\n"
    "2\tall_reduce_value\treplica=r1\top=257\tvalue=v3\t->\tstatus=0\tout=v2\tout.is=f32::00004040\n"
    "1\treplica\treplica=r2\tid=1\t->\tstatus=0\tresult=v4\n"
    "2\tvalue_create_tensor\tstrategy=s1\ttensor=f32::00000040\t->\tstatus=0\tout=v5\tout.is=f32::00000040\n"
    "2\tall_reduce_value\treplica=r2\top=257\tvalue=v5\t->\tstatus=0\tout=v4\tout.is=f32::00004040\n"
    "0\treduce\tstrategy=s1\top=9\tvalue=v1\t->\tstatus=3\terror=?\n"
    "0\tstrategy_destroy\tstrategy=s1\t->\tstatus=0\n"
    "end\t1\t10\n";

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  assert_true(at != text.npos);
  return text.replace(at, from.size(), to);
}

std::vector<std::string> faults_of(const std::string& text) { return Player(*parse(text).at(0)).play(); }

void the_program_is_right(void**) {
  const std::vector<std::string> faults = faults_of(kProgram);
  for (const std::string& fault : faults) print_error("%s\n", fault.c_str());
  assert_true(faults.empty());
}

void a_wrong_answer_is_noticed(void**) {
  const std::pair<const char*, const char*> damages[] = {
      {"(per_replica f32::00004040", "(per_replica f32::00004041"},  // other bits
      {"(per_replica f32::00004040", "(mirrored f32::00004040"},     // another kind
      {"out=v2\tout.is=f32::00004040", "out=v2\tout.is=f32:1:00004040"},
      {"out=v2", "out=v3"},  // a different object
      {"status=3\terror=?", "status=9\terror=?"},
      {"error=?", "error=t:another%20text"},
      {"status=3\terror=?", "status=0\tout=v6\tout.is=none"},
      {"id=1", "id=2"},  // a replica that never appears
      {"destroy\tstrategy=s1\t->\tstatus=0", "destroy\tstrategy=s1\t->\tstatus=9\terror=?"},
      {"status=0\tout=s1", "status=0\tout=s1\tmore=1"}};
  for (const auto& [from, to] : damages) {
    if (faults_of(replaced(kProgram, from, to)).empty())
      fail_msg("%s in the place of %s is not noticed", to, from);
  }
}

// Two logical devices, each with one of two numbers.
constexpr char kDivided[] =
    "dist-transcripts\t1\n"
    "case\texample\tTPUStrategy1x2/split\n"
    "0\ttopology_create\tmesh_shape=(1 1 1 2)\tndim=4\tdevice_coordinates=(0 0 0 0 0 0 0 1)\tnum_tasks=1\t"
    "num_devices_per_task=2\t->\tstatus=0\tout=t1\n"
    "0\ttopology_num_devices_per_task\ttopology=t1\t->\tout=2\n"
    "0\tdevice_assignment_build\ttopology=t1\tcomputation_shape=(1 1 1 2)\tndim=4\tnum_replicas=1\t"
    "device_order=4864\t->\tstatus=0\tout=a1\n"
    "0\ttopology_destroy\ttopology=t1\t->\n"
    "0\tdevice_assignment_coordinates\tassignment=a1\treplica=0\tlogical_device=1\t->\tstatus=0\tout=(0 0 0 "
    "1)\n"
    "0\tdevice_assignment_lookup_replicas\tassignment=a1\ttask=0\tlogical_device=1\t->\tstatus=0\tout=(0)\n"
    "0\tstrategy_create\toptions.kind=1284\toptions.device_assignment=a1\t->\tstatus=0\tout=s1\n"
    "0\trun_values\tstrategy=s1\tfn=1\t->\tstatus=0\tout=v1\tout.is=(sharded u8:2:0102 u8:1:01 u8:1:02)\n"
    "1\treplica\treplica=r1\tid=0\t->\tstatus=0\tresult=v1\n"
    "2\tvalue_create_tensor\tstrategy=s1\ttensor=u8:2:0102\t->\tstatus=0\tout=v2\tout.is=u8:2:0102\n"
    "2\tsplit_to_logical_devices\treplica=r1\tvalue=v2\tpartition_dimensions=(2)\tn=1\t->\tstatus=0\tout=v1\t"
    "out.is=(sharded u8:2:0102 u8:1:01 u8:1:02)\n"
    "0\tvalue_shard\tvalue=v1\tlogical_device=1\t->\tstatus=0\tout.begin=(1)\tout=u8:1:02\n"
    "0\tstrategy_destroy\tstrategy=s1\t->\tstatus=0\n"
    "0\tdevice_assignment_destroy\tassignment=a1\t->\n"
    "end\t1\t14\n";

void a_wrong_part_is_noticed(void**) {
  const std::vector<std::string> faults = faults_of(kDivided);
  for (const std::string& fault : faults) print_error("%s\n", fault.c_str());
  assert_true(faults.empty());
  const std::pair<const char*, const char*> damages[] = {
      {"(sharded u8:2:0102 u8:1:01 u8:1:02)", "(sharded u8:2:0102 u8:1:01 none)"},
      {"(sharded u8:2:0102 u8:1:01 u8:1:02)", "u8:2:0102"},
      {"out.begin=(1)", "out.begin=(0)"},
      {"out=u8:1:02", "out=u8:1:01"},
      {"out=(0 0 0 1)", "out=(0 0 0)"},
      {"out=(0)", "out=()"},
      {"out=2\n", "out=3\n"}};
  for (const auto& [from, to] : damages) {
    if (faults_of(replaced(kDivided, from, to)).empty())
      fail_msg("%s in the place of %s is not noticed", to, from);
  }
}

// Two workers that wait for each other.
constexpr char kWorkers[] =
    "dist-transcripts\t1\n"
    "case\texample\ttwo_workers/reduce\n"
    "0\tnetwork_create\tnum_workers=2\t->\tstatus=0\tout=n1\n"
    "0\tcluster_spec_from_json\ttext=t:{%22worker%22:[%22a:1%22,%22b:1%22]}\t->\tstatus=0\tout=p1\n"
    "0\tcluster_resolver_create_simple\tspec=p1\toptions.task_type=t:worker\toptions.has_task_id=1\t->\t"
    "status=0\tout=q1\n"
    "0\tcluster_resolver_create_simple\tspec=p1\toptions.task_type=t:worker\toptions.has_task_id=1\t"
    "options.task_id=1\t->\tstatus=0\tout=q2\n"
    "0\tstrategy_create\toptions.kind=1285\toptions.num_replicas=1\toptions.timeout_ns=20000000000\t"
    "options.cluster_resolver=q1\toptions.network=n1\t->\tstatus=0\tout=s1\n"
    "0\tstrategy_create\toptions.kind=1285\toptions.num_replicas=1\toptions.timeout_ns=20000000000\t"
    "options.cluster_resolver=q2\toptions.network=n1\t->\tstatus=0\tout=s2\n"
    "0\tnetwork_destroy\tnetwork=n1\t->\n"
    "0\tworkers\t->\n"
    "1\tworker\tworker=0\t->\n"
    "2\tvalue_create_tensor\tstrategy=s1\ttensor=f32::0000803f\t->\tstatus=0\tout=v1\tout.is=f32::0000803f\n"
    "2\treduce\tstrategy=s1\top=257\tvalue=v1\t->\tstatus=0\tout=v2\tout.is=f32::00004040\n"
    "1\tworker\tworker=1\t->\n"
    "2\tvalue_create_tensor\tstrategy=s2\ttensor=f32::00000040\t->\tstatus=0\tout=v3\tout.is=f32::00000040\n"
    "2\treduce\tstrategy=s2\top=257\tvalue=v3\t->\tstatus=0\tout=v4\tout.is=f32::00004040\n"
    "0\tstrategy_destroy\tstrategy=s1\t->\tstatus=0\n"
    "0\tstrategy_destroy\tstrategy=s2\t->\tstatus=0\n"
    "end\t1\t16\n";

void a_wrong_answer_of_a_worker_is_noticed(void**) {
  const std::vector<std::string> faults = faults_of(kWorkers);
  for (const std::string& fault : faults) print_error("%s\n", fault.c_str());
  assert_true(faults.empty());
  const std::pair<const char*, const char*> damages[] = {
      {"out=v2\tout.is=f32::00004040", "out=v2\tout.is=f32::00004041"},
      {"out=v4\tout.is=f32::00004040", "out=v3\tout.is=f32::00004040"},
      {"tensor=f32::00000040", "tensor=f32::00000041"},
      {"network=n1\t->\tstatus=0\tout=s2", "network=n2\t->\tstatus=0\tout=s2"}};
  for (const auto& [from, to] : damages) {
    if (faults_of(replaced(kWorkers, from, to)).empty())
      fail_msg("%s in the place of %s is not noticed", to, from);
  }
}

void what_is_unknown_is_noticed(void**) {
  assert_false(faults_of(replaced(kProgram, "0\treduce\t", "0\treduce_it\t")).empty());
  assert_false(faults_of(replaced(kProgram, "value=v1", "value=v9")).empty());
}

void a_broken_file_is_refused(void**) {
  const std::pair<const char*, const char*> damages[] = {{"transcripts\t1", "transcripts\t2"},
                                                         {"end\t1\t10", "end\t1\t11"},
                                                         {"end\t1\t10\n", ""},
                                                         {"1\treplica", "2\treplica"},
                                                         {"op=257", "op"},
                                                         {"\t->\tstatus=0\tout=s1", ""}};
  for (const auto& [from, to] : damages) {
    bool refused = false;
    try {
      parse(replaced(kProgram, from, to));
    } catch (const Malformed&) {
      refused = true;
    }
    if (!refused) fail_msg("%s in the place of %s is not refused", to, from);
  }
}

// Two NaNs count as equal, whatever their bits.
void nans_are_one(void**) {
  const auto literal = [](std::vector<uint32_t> bits, dist_dtype dtype, int64_t size) {
    return literal_of({bits.data(), dtype, 1, &size, nullptr});
  };
  assert_string_equal(literal({0xff800001, 0x7f800000}, DIST_F32, 2).c_str(), "f32:2:0000c07f0000807f");
  assert_string_equal(literal({0x7f810001, 0xfc01fc00}, DIST_BF16, 4).c_str(), "bf16:4:0100c07f00fc01fc");
  assert_string_equal(literal({0xfc01fc00}, DIST_F16, 2).c_str(), "f16:2:00fc007e");
  assert_string_equal(literal({0xff800001, 0}, DIST_COMPLEX64, 1).c_str(), "c64:1:0000c07f00000000");
  assert_string_equal(literal({1, 0x7ff00000}, DIST_F64, 1).c_str(), "f64:1:000000000000f87f");
  const Elements read = tensor_of("i16:2,1:0100ff7f");
  assert_int_equal(read.dtype, DIST_I16);
  assert_true(read.shape == std::vector<int64_t>({2, 1}) && read.bytes[3] == std::byte{0x7f});
}

// Reading returns what was written.
void lines_are_as_they_were(void**) {
  for (const char* text : {"", "a b\tc\n%", "\xc3\xa9(x)", "plain"}) {
    assert_string_equal(decode_text(encode_text(text)).c_str(), text);
  }
  assert_true(items_of("(dict t:k (list x1 x2) f32::00)").size() == 4);
  assert_true(items_of("()").empty());
  const Cases cases = parse(kProgram);
  assert_string_equal((first_line() + to_text(*cases[0]) + last_line(1, count(cases[0]->root))).c_str(),
                      kProgram);
}

int run(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const Cases cases = parse(text);
  std::map<std::string, Area> areas;
  for (const auto& one : cases) {
    Area& area = areas[one->area];
    area.name = one->area;
    area.cases.push_back(one.get());
  }
  std::vector<CMUnitTest> tests = {cmocka_unit_test(nans_are_one),
                                   cmocka_unit_test(lines_are_as_they_were),
                                   cmocka_unit_test(a_broken_file_is_refused),
                                   cmocka_unit_test(the_program_is_right),
                                   cmocka_unit_test(a_wrong_answer_is_noticed),
                                   cmocka_unit_test(a_wrong_part_is_noticed),
                                   cmocka_unit_test(a_wrong_answer_of_a_worker_is_noticed),
                                   cmocka_unit_test(what_is_unknown_is_noticed)};
  for (auto& [name, area] : areas)
    tests.push_back({area.name.c_str(), all_is_as_written, nullptr, nullptr, &area});
  // cmocka's macro does this, but only for arrays whose size is known at compile time.
  return _cmocka_run_group_tests("golden transcripts", tests.data(), tests.size(), nullptr, nullptr);
}

}  // namespace
}  // namespace golden::transcript

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: test_transcripts FILE\n", stderr);
    return 2;
  }
  try {
    return golden::transcript::run(argv[1]);
  } catch (const golden::Malformed& error) {
    std::fprintf(stderr, "test_transcripts: %s\n", error.what.c_str());
    return 2;
  }
}
