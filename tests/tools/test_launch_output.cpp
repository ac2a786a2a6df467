// SPDX-License-Identifier: Apache-2.0
// How dist-launch forwards the output of its tasks.
#include <stdlib.h>
#include <sys/ioctl.h>

#include "tests/tools/launch_support.hpp"

namespace {

void lines_have_their_task(void**) {
  Launch launch(task({"-n2", "--chief"}, {"say", "one", "err", "two", "raw", "three"}));
  launch.ends(0);
  assert_lines(sorted(lines_of(launch.all_out)),
               {"[chief 0] one", "[chief 0] three", "[worker 0] one", "[worker 0] three"});
  assert_lines(sorted(lines_of(launch.all_err)), {"[chief 0] two", "[worker 0] two"});
  Launch servers(task({"-n2", "--ps=1", "--grace=86400"}, {"say", "one"}));
  servers.ends(0);
  assert_lines(sorted(lines_of(servers.all_out)),
               {"[chief 0] one", "[ps 0] one", "[worker 0] one", "[worker 1] one"});
}

void long_lines_and_bytes(void**) {
  Launch launch(task({"-n1"}, {"bytes", "65536", "bytes", "65537", "zero", "raw", "\x80\xff\r", "say", ""}));
  launch.ends(0);
  const std::string full(65536, 'x');
  const std::string wanted = "[worker 0] " + full + "\n[worker 0] " + full + "\n[worker 0] x\n[worker 0] " +
                             std::string(1, '\0') + "\x80\xff\r\n";
  assert_true(launch.all_out == wanted);
}

void without_prefix(void**) {
  Launch launch(task({"-n1", "--no-prefix"}, {"say", "one", "err", "two", "raw", "three"}));
  launch.ends(0);
  assert_text(launch.all_out, "one\nthree");
  assert_text(launch.all_err, "two\n");
}

// Waits until the launcher has much more to write than its pipe holds.
void until_full(const Launch& launch) {
  int bytes = 0;
  while (ioctl(launch.out, FIONREAD, &bytes) == 0 && bytes < 20000) sched_yield();
}

// Four tasks write to both streams in small pieces, and all of them go to one pipe. No line may contain a
// part of another one.
void lines_are_not_mixed(void**) {
  constexpr int kLines = 1000;
  Launch launch(task({"-n4"}, {"lines", std::to_string(kLines)}), {.one_pipe = true});
  until_full(launch);
  launch.ends(0);
  int lines[4] = {};
  for (const auto& line : lines_of(launch.all_out)) {
    const char name = line.size() > 8 ? line[8] : '?';
    assert_in_range(name, '0', '3');
    assert_text(line, std::string("[worker ") + name + "] " + std::string(470, name));
    ++lines[name - '0'];
  }
  for (const int n : lines) assert_int_equal(n, kLines);
}

// If no process reads the output, tasks are blocked, but signals are still handled.
void who_reads_nothing_holds_up_no_signal(void**) {
  Launch launch(task({"-n2", "--grace=0"}, {"tell", "begins", "lines", "100000"}));
  launch.hear(2);
  until_full(launch);
  launch.send(SIGTERM);
  assert_int_equal(launch.end(), 128 + SIGTERM);
}

void who_reads_late_gets_all(void**) {
  Launch launch(task({"-n1"}, {"tell", "begins", "lines", "4000"}), {.one_pipe = true});
  launch.hear(1);
  launch.ends(0);
  assert_int_equal(lines_of(launch.all_out).size(), 4000);
}

void output_that_cannot_be_written(void**) {
  Launch launch(task({"-n2"}, {"only", "worker 0", "await", "say", "one", "end", "wait"}));
  launch.close_output();
  launch.open_gate();
  assert_int_equal(launch.end(), 125);
  assert_text(rest_of(launch.err),
              "dist-launch: cannot write to standard output: Broken pipe; the job was ended\n");
  assert_text(launch.hear_rest(), "");
  // The output may be lost even if all tasks have succeeded.
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  Launch lost(task({"-n1"}, {"say", "one"}), {.output = full});
  close(full);
  assert_int_equal(lost.end(), 125);
  assert_words(rest_of(lost.err), "cannot write to standard output: No space left on device");
}

// Returns the standard output of a launcher in a terminal, which turns newlines into \r\n.
std::string in_terminal(const Words& arguments, Given given) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal < 0) skip_because("this machine has no pseudoterminals");
  assert_int_equal(grantpt(terminal), 0);
  assert_int_equal(unlockpt(terminal), 0);
  given.output = open(ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
  assert_true(given.output >= 0);
  Launch launch(arguments, given);
  close(given.output);
  const std::string seen = rest_of(terminal);  // until EIO, when no process has the other side open
  assert_int_equal(launch.end(), 0);
  assert_text(rest_of(launch.err), "[worker 0] two\n");
  close(terminal);
  return seen;
}

void colours(void**) {
  const Words words = task({"-n1"}, {"say", "one", "err", "two"});
  assert_text(in_terminal(words, {.environment = {{"TERM", "xterm"}}}), "\033[36m[worker 0]\033[0m one\r\n");
  assert_text(in_terminal(words, {.environment = {{"TERM", "xterm"}, {"NO_COLOR", ""}}}),
              "\033[36m[worker 0]\033[0m one\r\n");
  assert_text(in_terminal(words, {.environment = {{"TERM", "xterm"}, {"NO_COLOR", "1"}}}),
              "[worker 0] one\r\n");
  assert_text(in_terminal(words, {.environment = {{"TERM", "dumb"}}}), "[worker 0] one\r\n");
}

}  // namespace

int main(int argc, char** argv) {
  take_paths(argc, argv);
  const CMUnitTest tests[] = {
      cmocka_unit_test(lines_have_their_task),
      cmocka_unit_test(long_lines_and_bytes),
      cmocka_unit_test(without_prefix),
      cmocka_unit_test(lines_are_not_mixed),
      cmocka_unit_test(who_reads_nothing_holds_up_no_signal),
      cmocka_unit_test(who_reads_late_gets_all),
      cmocka_unit_test(output_that_cannot_be_written),
      cmocka_unit_test(colours),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
