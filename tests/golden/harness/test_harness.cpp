// SPDX-License-Identifier: Apache-2.0
// Tests of the harness itself: it must find all differences. Each test writes a directory of cases and a
// list, and checks the report.
#include <stdlib.h>
#include <unistd.h>

#include <csetjmp>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

extern "C" {
#include <cmocka.h>
}

#include "compare.hpp"
#include "judge.hpp"
#include "report.hpp"
#include "runner.hpp"

namespace {

using golden::ReportOptions;

constexpr char kHead[] = "| cases | parts | kind | reason |\n|---|---|---|---|\n";

// A case that reduces two scalars by SUM, with `outcome` as the end of its recorded form.
std::string sum_case(const std::string& id, const std::string& outcome, const std::string& more = "") {
  return R"({"id":")" + id +
         R"(","area":"reduce","strategy":{"name":"MirroredStrategy","num_replicas":2},"inputs":{"op":"SUM","axis":null,)" +
         more + R"("per_replica":[{"kind":"tensor","dtype":"float32","shape":[],"data":[1.5]},)" +
         R"({"kind":"tensor","dtype":"float32","shape":[],"data":[2.0]}]},)" + outcome + "}";
}
std::string gives(const std::string& data, const std::string& dtype = "float32") {
  return R"("expected":{"result":{"kind":"tensor","dtype":")" + dtype + R"(","shape":[],"data":[)" + data +
         "]}}";
}
const std::string kRight = sum_case("MirroredStrategy2/right", gives("3.5"));
const std::string kWrong = sum_case("MirroredStrategy2/wrong", gives("3.25"));

class Fixture {
 public:
  Fixture() {
    std::string name = (std::filesystem::temp_directory_path() / "dist_goldenXXXXXX").string();
    assert_non_null(mkdtemp(name.data()));
    folder_ = name;
    std::filesystem::create_directory(folder_ / "cases");
    list("");
  }
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;
  ~Fixture() {
    if (out_ != nullptr) std::fclose(out_);
    std::filesystem::remove_all(folder_);
  }

  void file(const std::string& name, const std::string& text) { write(folder_ / "cases" / name, text); }
  void cases(const std::string& text, const std::string& area = "reduce") {
    file(area + ".json", R"({"area":")" + area + R"(","cases":[)" + text + "]}");
  }
  void list(const std::string& rows) { write(folder_ / "differences.md", kHead + rows); }
  std::string cases_folder() const { return (folder_ / "cases").string(); }
  std::string list_file() const { return (folder_ / "differences.md").string(); }

  // Returns the exit code of the report, and keeps its text for text().
  int report(const std::string& id = "") {
    return report(ReportOptions{{cases_folder()}, list_file(), cases_folder(), {"", id}});
  }
  int report(const ReportOptions& options) { return golden::report(options, capture()); }
  std::string text() {
    std::rewind(out_);
    std::string text;
    for (int c = std::fgetc(out_); c != EOF; c = std::fgetc(out_)) text += static_cast<char>(c);
    return text;
  }
  bool says(const std::string& what) { return text().find(what) != std::string::npos; }

 private:
  static void write(const std::filesystem::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  std::FILE* capture() {
    if (out_ != nullptr) std::fclose(out_);
    out_ = std::tmpfile();
    assert_non_null(out_);
    return out_;
  }

  std::filesystem::path folder_;
  std::FILE* out_ = nullptr;
};

void what_is_right_passes(void**) {
  Fixture fixture;
  fixture.cases(kRight);
  assert_int_equal(fixture.report(), 0);
  assert_true(fixture.says("1 100.00 %"));
}

void a_wrong_answer_is_found(void**) {
  Fixture fixture;
  fixture.cases(kRight + "," + kWrong);
  assert_int_equal(fixture.report(), 1);
  assert_true(fixture.says("reduce/MirroredStrategy2/wrong: result"));
  assert_true(fixture.says("3.25"));
  assert_int_equal(fixture.report("*/right"), 0);
  assert_int_equal(fixture.report("*/neither"), 2);
}

void every_part_of_a_tensor_counts(void**) {
  static const std::string wrong[] = {
      gives("3.5", "float64"),
      R"("expected":{"result":{"kind":"tensor","dtype":"float32","shape":[1],"data":[3.5]}})",
      R"("expected":{"result":{"kind":"tensor","dtype":"float32","shape":[],"data":["nan"]}})",
      R"("expected":{"result":{"kind":"list","items":[]}})",
      R"("expected":{"result":{"kind":"py_int","value":3}})",
      R"("expected":{"result":{"kind":"none"}})",
      R"("expected":{"other":{"kind":"none"}})",
      R"("expected":{})",
      R"("expected":null)",
      R"("expected":7)",
      R"("expected":{"kind":"per_replica","values":[]})",
  };
  for (const std::string& outcome : wrong) {
    Fixture fixture;
    fixture.cases(sum_case("MirroredStrategy2/a", outcome));
    assert_int_equal(fixture.report(), 1);
  }
  Fixture fixture;  // A Python number matches a scalar of its value.
  fixture.cases(sum_case("MirroredStrategy2/a", R"("expected":{"result":{"kind":"py_float","value":3.5}})"));
  assert_int_equal(fixture.report(), 0);
}

std::unique_ptr<rapidjson::Document> document(const char* text) {
  auto made = std::make_unique<rapidjson::Document>();
  made->Parse(text);
  assert_false(made->HasParseError());
  return made;
}

// The parts of each worker's answer are parts of the case.
void workers_compare_part_by_part(void**) {
  const auto expected = document(R"({"per_worker":[{"expected":{"a":1,"b":2}},{"expected":{"a":3,"b":4}}]})");
  assert_true(golden::compare(*expected, *expected).empty());
  const auto other = document(R"({"per_worker":[{"expected":{"a":1,"b":2}},{"expected":{"a":3,"b":5}}]})");
  const std::vector<golden::Difference> found = golden::compare(*expected, *other);
  assert_int_equal(found.size(), 1);
  assert_string_equal(found[0].part.c_str(), "b");
  assert_string_equal(found[0].where.c_str(), "worker 1: b");
  const auto fewer = document(R"({"per_worker":[{"expected":{"a":1,"b":2}}]})");
  assert_int_equal(golden::compare(*expected, *fewer).size(), 1);
}

// Durations differ between runs.
void times_are_no_answers(void**) {
  const auto expected = document(
      R"({"per_worker":[{"exited_after_seconds":4.5,"calls":[{"id":"a","inputs":{"fn":"f"},"expected":1,"seconds":2.5}]}]})");
  const auto came = document(R"({"per_worker":[{"calls":[{"id":"a","expected":1}]}]})");
  assert_true(golden::compare(*expected, *came).empty());
  const auto other = document(R"({"per_worker":[{"calls":[{"id":"a","expected":2}]}]})");
  assert_int_equal(golden::compare(*expected, *other).size(), 1);
}

void errors_compare_by_kind(void**) {
  Fixture fixture;
  const auto refuses = [](const std::string& type) {
    return sum_case("MirroredStrategy2/a",
                    R"("error":{"type":")" + type + R"(","message":"m","origin":"python"})");
  };
  fixture.cases(refuses("ValueError"));
  assert_int_equal(fixture.report(), 1);  // libdist has an answer
  assert_true(fixture.says("outcome"));
  std::string shapes = refuses("ValueError");
  shapes.replace(shapes.find("\"shape\":[]"), 10, "\"shape\":[1]");
  fixture.cases(shapes);
  assert_int_equal(fixture.report(), 0);
  shapes.replace(shapes.find("ValueError"), 10, "RuntimeError");
  fixture.cases(shapes);
  assert_int_equal(fixture.report(), 1);
  assert_true(fixture.says("INVALID_ARGUMENT: "));
  shapes.replace(shapes.find("RuntimeError"), 12, "IndexError");
  fixture.cases(shapes);  // an accidental error of Python, which any error matches
  assert_int_equal(fixture.report(), 0);
  shapes.replace(shapes.find("IndexError"), 10, "StrangeError");
  fixture.cases(shapes);
  assert_int_equal(fixture.report(), 1);
  assert_true(fixture.says("does not know an exception called \"StrangeError\""));
}

void the_list_excuses_what_it_names(void**) {
  Fixture fixture;
  fixture.cases(kRight + "," + kWrong);
  fixture.list("| `reduce/*/wrong` | result | on purpose | Since. |\n");
  assert_int_equal(fixture.report(), 0);
  fixture.list("| `reduce/*/wrong` | outcome | on purpose | Another part. |\n");
  assert_int_equal(fixture.report(), 1);
  fixture.list("| `reduce/*` | all | inapplicable | Both, of which one is the same. |\n");
  assert_int_equal(fixture.report(), 0);
}

void a_stale_row_is_found(void**) {
  Fixture fixture;
  fixture.cases(kRight + "," + kWrong);
  const std::string good = "| `reduce/*/wrong` | result | on purpose | Since. |\n";
  fixture.list(good + "| `reduce/*/gone` | all | on purpose | No such case. |\n");
  assert_int_equal(fixture.report(), 1);
  assert_true(fixture.says("differences.md:4: \"reduce/*/gone\" matches no case"));
  fixture.list(good + "| `reduce/*/right` | all | on purpose | It is the same. |\n");
  assert_int_equal(fixture.report(), 1);
  assert_true(fixture.says("differences.md:4: \"reduce/*/right\" explains nothing"));
  assert_int_equal(fixture.report("*/wrong"), 0);  // with only some cases, rows are not judged
}

// Numbers may agree by chance. Then the row is checked with the project's own copy.
void a_row_may_be_explained_by_the_own_copy(void**) {
  Fixture own;
  own.cases(kWrong);
  Fixture other;
  other.cases(sum_case("MirroredStrategy2/wrong", gives("3.5")));
  other.list("| `reduce/*/wrong` | result | on purpose | Since. |\n");
  assert_int_equal(other.report(), 1);
  assert_int_equal(
      own.report(ReportOptions{{other.cases_folder()}, other.list_file(), own.cases_folder(), {}}), 0);
}

void a_bad_list_is_refused(void**) {
  static const char* const bad[] = {
      "| `reduce/*` | all | by accident | No such kind. |\n", "| `reduce/*` | all | on purpose | |\n",
      "| `reduce/*` | | on purpose | No part. |\n",           "| `reduce/*` | all | on purpose |\n",
      "| `nothing/*` | all | on purpose | No area. |\n",
  };
  for (const char* rows : bad) {
    Fixture fixture;
    fixture.cases(kRight);
    fixture.list(rows);
    assert_int_equal(fixture.report(), 2);
    assert_true(fixture.says("differences.md:3: "));
  }
}

void what_the_replay_does_not_know_is_found(void**) {
  Fixture fixture;
  std::string unknown = sum_case("MirroredStrategy2/a", gives("3.5"));
  unknown.replace(unknown.find("\"per_replica\""), 13, "\"fn\":\"dances\",\"x\"");
  fixture.cases(unknown);
  fixture.list("| `reduce/*` | all | on purpose | No list excuses that. |\n");
  assert_int_equal(fixture.report(), 1);
  assert_true(fixture.says("the replay does not know fn \"dances\""));
  std::string strategy = kRight;
  strategy.replace(strategy.find("MirroredStrategy\""), 17, "StrangeStrategy\"");
  fixture.cases(strategy);
  fixture.list("");
  assert_int_equal(fixture.report(), 1);
  fixture.cases(kRight, "dancing");
  assert_int_equal(fixture.report(), 1);
  assert_true(fixture.says("does not know this area"));
}

// Cases that a build without gRPC cannot play are counted, and their rows do not become stale.
void what_is_not_built_is_counted(void**) {
  Fixture fixture;
  fixture.cases(kRight, "parameter_server");
  fixture.list("| `parameter_server/*` | all | on purpose | Nobody knows. |\n");
  ReportOptions options{{fixture.cases_folder()}, fixture.list_file(), fixture.cases_folder(), {}};
  options.grpc = false;
  assert_int_equal(fixture.report(options), 0);
  assert_true(
      fixture.says("parameter_server             1                -                -                -"));
  assert_true(fixture.says("1 100.00 %"));
}

void what_is_no_recording_is_refused(void**) {
  std::string deep = R"({"area":"reduce","cases":)";
  deep.append(100000, '[');
  const std::string bad[] = {
      "",
      "{",
      "[]",
      "null",
      "{}",
      R"({"area":"reduce"})",
      R"({"area":7,"cases":[]})",
      R"({"area":"reduce","cases":7})",
      R"({"area":"reduce","cases":[7]})",
      R"({"area":"reduce","cases":[{}]})",
      R"({"area":"reduce","cases":[{"id":"a","strategy":{},"inputs":{}}]})",
      R"({"area":"reduce","cases":[{"id":"a","strategy":[],"inputs":{},"expected":{}}]})",
      R"({"area":"reduce","cases":[{"id":"a","strategy":{},"inputs":{},"expected":{},"error":{}}]})",
      R"({"area":"reduce","cases":[)" + kRight + "," + kRight + "]}",
      R"({"area":"reduce","cases":[)" + kRight + "]} more",
      deep,
  };
  for (const std::string& text : bad) {
    Fixture fixture;
    fixture.file("reduce.json", text);
    assert_int_equal(fixture.report(), 2);
    assert_true(fixture.says("golden: "));
  }
  Fixture empty;
  assert_int_equal(empty.report(), 2);
  assert_true(empty.says("holds no *.json file"));
}

// The file is a valid recording, but the content of a case is impossible.
void cases_that_make_no_sense_are_refused(void**) {
  const std::pair<std::string, std::string> changes[] = {
      {R"("data":[1.5])", R"("data":[])"},
      {R"("data":[1.5])", R"("data":["x"])"},
      {R"("data":[1.5])", R"("data":{})"},
      {R"("shape":[])", R"("shape":[-1])"},
      {R"("shape":[])", R"("shape":[4611686018427387904,8])"},
      {R"("shape":[])", R"("shape":7)"},
      {R"("dtype":"float32")", R"("dtype":"float33")"},
      {R"("kind":"tensor")", R"("kind":"tensors")"},
      {R"("op":"SUM",)", ""},
      {R"("op":"SUM")", R"("op":7)"},
      {R"("axis":null)", R"("axis":"x")"},
      {R"("num_replicas":2)", R"("num_replicas":3)"},
      {R"(,"num_replicas":2)", ""},
      {R"("name":"MirroredStrategy")", R"("name":null)"},
  };
  for (const auto& [from, to] : changes) {
    Fixture fixture;
    std::string text = kRight;
    assert_true(text.find(from) != std::string::npos);
    text.replace(text.find(from), from.size(), to);
    fixture.cases(text + "," + sum_case("MirroredStrategy2/b", gives("3.5")));
    assert_int_equal(fixture.report(), 2);
    assert_true(fixture.says("malformed: "));
    assert_true(fixture.says("2       1  50.00 %"));  // the other case was played
  }
  Fixture fixture;
  std::string many = kRight;
  many.replace(many.find(":2}"), 3, ":2147483647}");
  fixture.cases(many);
  assert_int_equal(fixture.report(), 1);  // the system cannot run so many threads
  assert_true(fixture.says("RESOURCE_EXHAUSTED: "));
}

// Behaves as the id asks.
void play_id(golden::Replay& replay) {
  if (replay.topic(0) == "dies") std::abort();
  while (replay.topic(0) == "hangs") pause();
  replay.record("result", replay.json(replay.topic(0)));
}

// Records the process id.
void play_pid(golden::Replay& replay) { replay.record("result", replay.json(int64_t{getpid()})); }

// Cases with these ids, for run_cases().
class Cases {
 public:
  Cases(std::initializer_list<const char*> ids) {
    std::string cases;
    for (const char* id : ids) {
      if (!cases.empty()) cases += ',';
      cases += sum_case(id, R"("expected":{"result":"goes"})");
    }
    fixture_.cases(cases);
    areas_ = golden::load_directory(fixture_.cases_folder());
    for (const golden::Case& one : areas_[0].cases) pointers_.push_back(&one);
  }
  const golden::Case& operator[](std::size_t i) const { return *pointers_[i]; }
  std::vector<golden::Answer> run(golden::ReplayFn replay, const char* by_grpc) const {
    std::vector<golden::Answer> answers;
    golden::run_cases({"reduce", replay, by_grpc}, pointers_, std::chrono::seconds(3),
                      [&](std::size_t index, const golden::Answer& answer) {
                        assert_int_equal(index, answers.size());
                        answers.push_back(answer);
                      });
    return answers;
  }

 private:
  Fixture fixture_;
  std::vector<golden::Area> areas_;
  std::vector<const golden::Case*> pointers_;
};

void cases_by_grpc_have_a_process_each(void**) {
  const Cases cases{"s/a", "s/alone", "s/alone#2", "s/b", "s/b#2"};
  const std::vector<golden::Answer> answers = cases.run(play_pid, "*/alone*");
  assert_int_equal(answers.size(), 5);
  for (const golden::Answer& one : answers) assert_true(one.how == golden::Answer::How::kPlayed);
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = i + 1; j < 4; ++j) assert_true(answers[i].text != answers[j].text);
  }
  assert_true(answers[3].text == answers[4].text);
}

void what_dies_or_hangs_is_named_and_the_others_go_on(void**) {
  const Cases cases{"s/goes", "s/dies", "s/dies#2", "s/goes#2", "s/hangs", "s/goes#3"};
  const std::vector<golden::Answer> answers = cases.run(play_id, "");
  using How = golden::Answer::How;
  static constexpr How kHow[] = {How::kPlayed, How::kDied, How::kDied,
                                 How::kPlayed, How::kHung, How::kPlayed};
  assert_int_equal(answers.size(), std::size(kHow));
  for (std::size_t i = 0; i < std::size(kHow); ++i) {
    assert_true(answers[i].how == kHow[i]);
    const golden::Judgement judgement = golden::judge(cases[i], answers[i]);
    assert_int_equal(judgement.faults.size(), kHow[i] == How::kPlayed ? 0 : 1);
    assert_true(judgement.differences.empty());
  }
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(what_is_right_passes),
      cmocka_unit_test(a_wrong_answer_is_found),
      cmocka_unit_test(every_part_of_a_tensor_counts),
      cmocka_unit_test(workers_compare_part_by_part),
      cmocka_unit_test(times_are_no_answers),
      cmocka_unit_test(errors_compare_by_kind),
      cmocka_unit_test(the_list_excuses_what_it_names),
      cmocka_unit_test(a_stale_row_is_found),
      cmocka_unit_test(a_row_may_be_explained_by_the_own_copy),
      cmocka_unit_test(a_bad_list_is_refused),
      cmocka_unit_test(what_the_replay_does_not_know_is_found),
      cmocka_unit_test(what_is_not_built_is_counted),
      cmocka_unit_test(what_is_no_recording_is_refused),
      cmocka_unit_test(cases_that_make_no_sense_are_refused),
      cmocka_unit_test(cases_by_grpc_have_a_process_each),
      cmocka_unit_test(what_dies_or_hangs_is_named_and_the_others_go_on),
  };
  return cmocka_run_group_tests_name("golden harness", tests, nullptr, nullptr);
}
