// SPDX-License-Identifier: Apache-2.0
// How a job ends: which task failed, what happens to the others, and what is left behind.
#include "tests/tools/launch_support.hpp"

namespace {

void the_first_failure_is_the_jobs(void**) {
  // The others are running before the failure, and their own exit statuses do not count.
  Launch launch(task({"-n3"}, {"only", "worker 1", "await", "await", "exit", "7", "end", "trap", "TERM",
                               "exit", "tell", "up", "wait"}));
  assert_lines(launch.hear(2), {"worker 0 up", "worker 2 up"});
  launch.open_gate(2);
  launch.ends(7);
  assert_text(launch.all_err, "dist-launch: worker 1 exited with status 7; the others were ended\n");
  assert_text(launch.hear_rest(), "");
}

// Both have ended before the launcher notices. It reports the one that ended first, although the other one
// has the smaller number.
void the_first_of_two(void**) {
  Launch launch(task({"-n2"}, {"tell", "up", "wait"}));
  pid_t pids[2] = {};
  for (int i = 0; i < 2; ++i) {
    pid_t pid = -1;
    const bool is_first = launch.hear(1, &pid)[0] == "worker 0 up";
    pids[is_first ? 0 : 1] = pid;
  }
  launch.send(SIGSTOP);
  int status = 0;
  assert_int_equal(waitpid(launch.pid, &status, WUNTRACED), launch.pid);
  for (const auto& [pid, signal] : {std::pair{pids[1], SIGUSR1}, std::pair{pids[0], SIGUSR2}}) {
    assert_int_equal(kill(pid, signal), 0);
    until_state(pid, 'Z');
  }
  launch.send(SIGCONT);
  launch.ends(128 + SIGUSR1);
  assert_text(launch.all_err, "dist-launch: worker 1 was killed by SIGUSR1; the others were ended\n");
}

void killed(void**) {
  Launch launch(task({"-n3", "--chief"}, {"only", "worker 1", "raise", "KILL", "end", "wait"}));
  launch.ends(128 + SIGKILL);
  assert_text(launch.all_err, "dist-launch: worker 1 was killed by SIGKILL; the others were ended\n");
  Launch alone(task({"-n1"}, {"raise", "SEGV"}));
  alone.ends(128 + SIGSEGV);
  assert_text(alone.all_err, "dist-launch: worker 0 was killed by SIGSEGV\n");
}

// The output of a task is written before the message about its failure.
void output_comes_before_the_failure(void**) {
  Launch launch(task({"-n1"}, {"say", "one", "raw", "two", "exit", "3"}), {.one_pipe = true});
  launch.ends(3);
  assert_text(launch.all_out, "[worker 0] one\n[worker 0] two\ndist-launch: worker 0 exited with status 3\n");
}

void who_does_not_end_is_killed(void**) {
  Launch launch(task({"-n2", "--grace=0.25"}, {"only", "worker 0", "await", "exit", "5", "end", "trap",
                                               "TERM", "ignore", "tell", "up", "wait"}));
  launch.hear(1);
  launch.open_gate();
  launch.ends(5);
  assert_text(launch.all_err,
              "dist-launch: worker 1 did not end within 0.25 s: killed\n"
              "dist-launch: worker 0 exited with status 5; the others were ended\n");
}

void one_that_ends_well_ends_nobody(void**) {
  Launch launch(
      task({"-n2"}, {"only", "worker 0", "tell", "ends", "exit", "0", "end", "await", "say", "done"}));
  pid_t first = -1;
  assert_lines(launch.hear(1, &first), {"worker 0 ends"});
  until_gone(first);
  launch.open_gate();
  launch.ends(0);
  assert_text(launch.all_out, "[worker 1] done\n");
  assert_text(launch.all_err, "");
}

// Each task's child ends with it. The last line is the end of a pipe that all of them have open.
void children_end_with_their_task(void**) {
  Launch launch(task({"-n2"}, {"child", "await"}));
  assert_lines(launch.hear(2), {"worker 0 child", "worker 1 child"});
  launch.open_gate(2);
  launch.ends(0);
  assert_text(launch.hear_rest(), "");
}

// A process in its own session continues and keeps the pipe open. The launcher does not wait for it.
void daemons_hold_up_nobody(void**) {
  Launch launch(task({"-n1"}, {"raw", "half", "daemon", "await"}));
  pid_t daemon = -1;
  assert_lines(launch.hear(1, &daemon), {"worker 0 daemon"});
  launch.open_gate();
  launch.ends(0);
  assert_text(launch.all_out, "[worker 0] half\n");
  assert_int_equal(kill(daemon, SIGKILL), 0);
  assert_text(launch.hear_rest(), "");
}

void a_killed_launcher_leaves_nothing(void**) {
  Launch launch(
      task({"-n2"}, {"trap", "TERM", "ignore", "trap", "HUP", "ignore", "child", "tell", "up", "wait"}));
  assert_lines(launch.hear(4), {"worker 0 child", "worker 0 up", "worker 1 child", "worker 1 up"});
  launch.send(SIGKILL);
  assert_int_equal(launch.end(), -SIGKILL);
  assert_text(launch.hear_rest(), "");
}

// A task dies with its launcher even if the process that would kill its group is dead.
void a_task_dies_with_its_launcher(void**) {
  Launch launch(task({"-n2"}, {"trap", "TERM", "ignore", "tell", "up", "wait"}));
  launch.hear(2);
  const std::string pid = std::to_string(launch.pid);
  const std::string children = text_of_file("/proc/" + pid + "/task/" + pid + "/children");
  if (children.empty()) skip_because("the kernel does not list the children of a process");
  const pid_t keeper = std::stoi(children);  // it is started first
  // It sets its name when it starts.
  while (text_of_file("/proc/" + std::to_string(keeper) + "/comm") != "dist-launch-end\n") sched_yield();
  assert_int_equal(kill(keeper, SIGKILL), 0);
  until_state(keeper, 'Z');
  launch.send(SIGKILL);
  assert_int_equal(launch.end(), -SIGKILL);
  assert_text(launch.hear_rest(), "");
}

// At any point of the start: all started processes are gone when the pipe ends.
void a_launcher_killed_while_it_starts(void**) {
  for (int tasks = 1; tasks <= 16; ++tasks) {
    Launch launch(task({"-n32"}, {"child", "tell", "up", "wait"}));
    launch.hear(tasks);
    launch.send(SIGKILL);
    assert_int_equal(launch.end(), -SIGKILL);
    launch.hear_rest();
  }
}

// The program is not at fault, and tasks that were already started are ended.
void what_cannot_be_started(void**) {
  Launch launch(task({"-n12"}, {"child", "wait"}), {.most_files = 32});
  launch.ends(125);
  assert_words(launch.all_err, " could not be started: Too many open files; the others were ended\n");
  launch.hear_rest();
}

}  // namespace

int main(int argc, char** argv) {
  take_paths(argc, argv);
  const CMUnitTest tests[] = {
      cmocka_unit_test(the_first_failure_is_the_jobs),
      cmocka_unit_test(the_first_of_two),
      cmocka_unit_test(killed),
      cmocka_unit_test(output_comes_before_the_failure),
      cmocka_unit_test(who_does_not_end_is_killed),
      cmocka_unit_test(one_that_ends_well_ends_nobody),
      cmocka_unit_test(children_end_with_their_task),
      cmocka_unit_test(daemons_hold_up_nobody),
      cmocka_unit_test(a_killed_launcher_leaves_nothing),
      cmocka_unit_test(a_task_dies_with_its_launcher),
      cmocka_unit_test(a_launcher_killed_while_it_starts),
      cmocka_unit_test(what_cannot_be_started),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
