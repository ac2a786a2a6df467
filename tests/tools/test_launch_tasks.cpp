// SPDX-License-Identifier: Apache-2.0
// The environment of tasks of dist-launch: TF_CONFIG, other variables, standard input, signals.
#include "tests/tools/launch_support.hpp"

namespace {

// Returns the text between two others, which must exist.
std::string between(const std::string& text, const std::string& before, const std::string& after) {
  const std::size_t begin = text.find(before);
  const std::size_t end = begin == std::string::npos ? begin : text.find(after, begin + before.size());
  if (end == std::string::npos) fail_msg("no '%s...%s' in '%s'", before.c_str(), after.c_str(), text.c_str());
  return text.substr(begin + before.size(), end - begin - before.size());
}

// Replaces the ports of 127.0.0.1 by P, and appends them to `ports` in order.
std::string without_ports(std::string text, Words* ports) {
  const std::string host = "\"127.0.0.1:";
  for (std::size_t at = 0; (at = text.find(host, at)) != std::string::npos;) {
    const std::size_t begin = at + host.size();
    const std::size_t end = text.find('"', begin);
    ports->push_back(text.substr(begin, end - begin));
    text.replace(at, end + 1 - at, "P");
  }
  return text;
}

// With --ps, the others are ended some time after the chief. All tasks wait until the test has seen all of
// them.
const Words kShowConfig = {"env", "TF_CONFIG", "tell", "done", "await"};

void let_all_show(const Launch& launch, int tasks) {
  launch.hear(tasks);
  launch.open_gate(tasks);
}

void configs_of(const Words& options, const std::string& cluster, const Words& wanted) {
  Launch launch(task(options, kShowConfig));
  let_all_show(launch, static_cast<int>(wanted.size()));
  launch.ends(0);
  Words seen;
  std::string first;
  for (const auto& line : sorted(lines_of(launch.all_out))) {
    const std::string here = between(line, "\"cluster\":", ",\"task\"");
    if (first.empty()) first = here;
    assert_text(here, first);
    seen.push_back(line.substr(0, line.find("TF_CONFIG=")) + between(line, "\"task\":", "}") + "}");
  }
  assert_lines(seen, wanted);
  Words ports;
  assert_text(without_ports(first, &ports), cluster);
  assert_int_equal(ports.size(), wanted.size());
  ports = sorted(ports);
  assert_true(std::adjacent_find(ports.begin(), ports.end()) == ports.end());
}

void tf_config(void**) {
  configs_of({"-n1"}, R"({"worker":[P]})", {R"([worker 0] {"type":"worker","index":0})"});
  configs_of({"-n1", "--chief"}, R"({"chief":[P]})", {R"([chief 0] {"type":"chief","index":0})"});
  configs_of({"-n2", "--chief"}, R"({"chief":[P],"worker":[P]})",
             {R"([chief 0] {"type":"chief","index":0})", R"([worker 0] {"type":"worker","index":0})"});
  // With parameter servers, there is a chief in addition to the workers.
  configs_of({"--workers=1", "--ps=1"}, R"({"chief":[P],"worker":[P],"ps":[P]})",
             {R"([chief 0] {"type":"chief","index":0})", R"([ps 0] {"type":"ps","index":0})",
              R"([worker 0] {"type":"worker","index":0})"});
  configs_of({"--ps=2", "--workers=3"}, R"({"chief":[P],"worker":[P,P,P],"ps":[P,P]})",
             {R"([chief 0] {"type":"chief","index":0})", R"([ps 0] {"type":"ps","index":0})",
              R"([ps 1] {"type":"ps","index":1})", R"([worker 0] {"type":"worker","index":0})",
              R"([worker 1] {"type":"worker","index":1})", R"([worker 2] {"type":"worker","index":2})"});
  configs_of({"-n3"}, R"({"worker":[P,P,P]})",
             {R"([worker 0] {"type":"worker","index":0})", R"([worker 1] {"type":"worker","index":1})",
              R"([worker 2] {"type":"worker","index":2})"});
}

void many_have_ports_of_their_own(void**) {
  Launch launch(task({"-n259", "--ps=56", "--grace=86400"}, {"only", "worker 7", "env", "TF_CONFIG", "end"}));
  launch.ends(0);
  Words ports;
  without_ports(launch.all_out, &ports);
  assert_int_equal(ports.size(), 316);
  ports = sorted(ports);
  assert_true(std::adjacent_find(ports.begin(), ports.end()) == ports.end());
}

void several_machines(void**) {
  const Given given = {.environment = {{"DIST_JOB_SECRET", "the secret of all"}}};
  const std::string cluster =
      R"("cluster":{"worker":["a:29500","a:29501","[fd00::1]:29500","10.0.0.7:29500"]})";
  const Words wanted[] = {{"[worker 0] TF_CONFIG={" + cluster + R"(,"task":{"type":"worker","index":0}})",
                           "[worker 1] TF_CONFIG={" + cluster + R"(,"task":{"type":"worker","index":1}})"},
                          {"[worker 2] TF_CONFIG={" + cluster + R"(,"task":{"type":"worker","index":2}})"},
                          {"[worker 3] TF_CONFIG={" + cluster + R"(,"task":{"type":"worker","index":3}})"}};
  for (int i = 0; i < 3; ++i) {
    Launch launch(
        task({"-n4", "--hosts=a:2,[fd00::1],10.0.0.7:1", "--index", std::to_string(i)}, {"env", "TF_CONFIG"}),
        given);
    launch.ends(0);
    assert_lines(sorted(lines_of(launch.all_out)), wanted[i]);
  }
  Launch chief(task({"--hosts=a:1,b:2", "--index=1", "--port=700", "--chief"}, {"env", "TF_CONFIG"}), given);
  chief.ends(0);
  const std::string other = R"("cluster":{"chief":["a:700"],"worker":["b:700","b:701"]})";
  assert_lines(sorted(lines_of(chief.all_out)),
               {"[worker 0] TF_CONFIG={" + other + R"(,"task":{"type":"worker","index":0}})",
                "[worker 1] TF_CONFIG={" + other + R"(,"task":{"type":"worker","index":1}})"});
  Launch secret(task({"--hosts=a", "--index=0"}, {"env", "DIST_JOB_SECRET"}), given);
  secret.ends(0);
  assert_text(secret.all_out, "[worker 0] DIST_JOB_SECRET=the secret of all\n");
  Launch empty(task({"--hosts=a", "--index=0"}, {}), {.environment = {{"DIST_JOB_SECRET", ""}}});
  empty.ends(2);
}

// libdist's own resolver reads what dist-launch has written.
void resolver_reads_it(void**) {
  Launch launch({"-n1", "--ps=1", resolver_path, task_path, "tell", "done", "await"});
  let_all_show(launch, 3);
  launch.ends(0);
  assert_text(launch.all_err, "");
  Words ports;
  const Words lines = sorted(lines_of(launch.all_out));
  assert_int_equal(lines.size(), 3);
  without_ports(lines[0], &ports);
  assert_int_equal(ports.size(), 3);
  const std::string cluster = R"({"chief":["127.0.0.1:)" + ports[0] + R"("],"worker":["127.0.0.1:)" +
                              ports[1] + R"("],"ps":["127.0.0.1:)" + ports[2] + R"("]})";
  assert_lines(lines, {"[chief 0] chief 0 at 127.0.0.1:" + ports[0] + ", chief, of " + cluster,
                       "[ps 0] ps 0 at 127.0.0.1:" + ports[2] + " of " + cluster,
                       "[worker 0] worker 0 at 127.0.0.1:" + ports[1] + " of " + cluster});
  Launch hosts({"--hosts=[fd00::1]:1,b.example:2", "--index=1", "--port=800", resolver_path, task_path},
               {.environment = {{"DIST_JOB_SECRET", "s"}}});
  hosts.ends(0);
  const std::string of = R"( of {"worker":["[fd00::1]:800","b.example:800","b.example:801"]})";
  assert_lines(sorted(lines_of(hosts.all_out)),
               {"[worker 1] worker 1 at b.example:800" + of, "[worker 2] worker 2 at b.example:801" + of});
}

std::string secret_of_job() {
  Launch launch(task({"-n2"}, {"env", "DIST_JOB_SECRET"}));
  launch.ends(0);
  const Words lines = sorted(lines_of(launch.all_out));
  assert_int_equal(lines.size(), 2);
  const std::string secret = between(lines[0] + "\n", "[worker 0] DIST_JOB_SECRET=", "\n");
  assert_text(lines[1], "[worker 1] DIST_JOB_SECRET=" + secret);
  assert_text(launch.all_err, "");
  return secret;
}

void secrets(void**) {
  const std::string one = secret_of_job();
  assert_int_equal(one.size(), 64);
  assert_int_equal(one.find_first_not_of("0123456789abcdef"), std::string::npos);
  assert_true(one != secret_of_job());
  Launch kept(task({"-n1"}, {"env", "DIST_JOB_SECRET"}), {.environment = {{"DIST_JOB_SECRET", "mine"}}});
  kept.ends(0);
  assert_text(kept.all_out, "[worker 0] DIST_JOB_SECRET=mine\n");
  // An empty secret would not protect the job.
  Launch empty(task({"-n1"}, {"env", "DIST_JOB_SECRET"}), {.environment = {{"DIST_JOB_SECRET", ""}}});
  empty.ends(0);
  assert_int_equal(empty.all_out.size(), std::string("[worker 0] DIST_JOB_SECRET=\n").size() + 64);
}

void variables(void**) {
  const Words asked = {"env", "DIST_REPLICAS", "env", "DIST_RESTART", "env", "OTHER"};
  Launch launch(task({"-n1", "--replicas=4"}, asked),
                {.environment = {{"OTHER", "a=b"}, {"DIST_RESTART", "7"}}});
  launch.ends(0);
  assert_text(launch.all_out,
              "[worker 0] DIST_REPLICAS=4\n[worker 0] DIST_RESTART is not set\n[worker 0] OTHER=a=b\n");
  Launch plain(task({"-n1"}, asked), {.environment = {{"DIST_REPLICAS", "3"}}});
  plain.ends(0);
  assert_text(
      plain.all_out,
      "[worker 0] DIST_REPLICAS=3\n[worker 0] DIST_RESTART is not set\n[worker 0] OTHER is not set\n");
  Launch inner(task({"-n1"}, {"env", "TF_CONFIG"}), {.environment = {{"TF_CONFIG", "of another job"}}});
  inner.ends(0);
  assert_words(inner.all_out, "[worker 0] TF_CONFIG={\"cluster\":");
}

void input_is_empty(void**) {
  int ends[2];
  assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
  assert_int_equal(write(ends[1], "text", 4), 4);
  Launch launch(task({"-n2"}, {"input"}), {.input = ends[0]});
  launch.ends(0);
  close(ends[0]);
  close(ends[1]);
  assert_lines(sorted(lines_of(launch.all_out)),
               {"[worker 0] 0 bytes of input", "[worker 1] 0 bytes of input"});
}

// Tasks do not inherit the signals that dist-launch blocks and ignores for itself.
void signals_are_as_they_were(void**) {
  Launch launch(task({"-n1"}, {"signals"}));
  launch.ends(0);
  assert_text(launch.all_out, "[worker 0] SigBlk:\t0000000000000000\n[worker 0] SigIgn:\t0000000000000000\n");
  Launch ignoring(task({"-n1"}, {"signals"}), {.ignored = SIGPIPE});
  ignoring.ends(0);
  assert_text(ignoring.all_out,
              "[worker 0] SigBlk:\t0000000000000000\n[worker 0] SigIgn:\t0000000000001000\n");
}

}  // namespace

int main(int argc, char** argv) {
  take_paths(argc, argv);
  const CMUnitTest tests[] = {
      cmocka_unit_test(tf_config),        cmocka_unit_test(many_have_ports_of_their_own),
      cmocka_unit_test(several_machines), cmocka_unit_test(resolver_reads_it),
      cmocka_unit_test(secrets),          cmocka_unit_test(variables),
      cmocka_unit_test(input_is_empty),   cmocka_unit_test(signals_are_as_they_were),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
