// SPDX-License-Identifier: Apache-2.0
// Tasks that dist-launch restarts.
#include "tests/tools/launch_support.hpp"

namespace {

const std::string kSays = "dist-launch: ";

void the_task_that_failed(void**) {
  Launch launch(task({"-n2", "--restarts=3"},
                     {"env",  "DIST_RESTART", "env",      "TF_CONFIG", "env",   "DIST_JOB_SECRET",
                      "only", "worker 1",     "first",    "exit",      "3",     "end",
                      "end",  "only",         "worker 1", "tell",      "again", "end",
                      "only", "worker 0",     "await",    "end"}));
  assert_lines(launch.hear(1), {"worker 1 again"});
  launch.open_gate();
  launch.ends(0);
  assert_text(launch.all_err,
              kSays + "worker 1 exited with status 3; restarting it in 0.1 s (restart 1 of 3)\n");
  const Words lines = sorted(lines_of(launch.all_out));
  assert_int_equal(lines.size(), 9);
  // The lines are sorted: the secret, DIST_RESTART and TF_CONFIG of worker 0, and then each twice of worker
  // 1.
  assert_text(lines[1], "[worker 0] DIST_RESTART is not set");
  assert_text(lines[5], "[worker 1] DIST_RESTART is not set");
  assert_text(lines[6], "[worker 1] DIST_RESTART=1");
  // Its address, its index and the secret are unchanged.
  assert_text(lines[3], lines[4]);
  assert_text(lines[7], lines[8]);
}

void until_restarts_are_used_up(void**) {
  Launch launch(task({"-n2", "--restarts=3"},
                     {"only", "worker 0", "env", "DIST_RESTART", "raise", "KILL", "end", "wait"}));
  launch.ends(128 + SIGKILL);
  assert_text(launch.all_out,
              "[worker 0] DIST_RESTART is not set\n[worker 0] DIST_RESTART=1\n[worker 0] DIST_RESTART=2\n"
              "[worker 0] DIST_RESTART=3\n");
  const std::string killed = kSays + "worker 0 was killed by SIGKILL; ";
  assert_text(launch.all_err, killed + "restarting it in 0.1 s (restart 1 of 3)\n" + killed +
                                  "restarting it in 0.2 s (restart 2 of 3)\n" + killed +
                                  "restarting it in 0.4 s (restart 3 of 3)\n" + killed +
                                  "the others were ended\n");
}

// After worker 0 has succeeded, a restarted worker would find no other one.
void a_worker_that_fails_after_the_end_is_not_started_again(void**) {
  Launch launch(task({"-n3", "--restarts=3"},
                     {"only", "worker 0", "tell", "ends", "end", "only", "worker 1", "await", "raise", "KILL",
                      "end", "only", "worker 2", "await", "exit", "1", "end"}));
  pid_t pid = -1;
  assert_lines(launch.hear(1, &pid), {"worker 0 ends"});
  until_gone(pid);
  launch.open_gate(2);
  launch.ends(0);
  const std::string after = " after the job had ended: not restarting it";
  assert_lines(sorted(lines_of(launch.all_err)), {kSays + "worker 1 was killed by SIGKILL" + after,
                                                  kSays + "worker 2 exited with status 1" + after});
}

void a_worker_that_was_started_again_is_ended_after_the_end(void**) {
  Launch launch(
      task({"-n2", "--restarts=3", "--grace=0.1"},
           {"only", "worker 0", "await",    "end",  "only",  "worker 1", "first", "exit",   "3",    "end",
            "end",  "only",     "worker 1", "tell", "again", "trap",     "TERM",  "ignore", "wait", "end"}));
  assert_lines(launch.hear(1), {"worker 1 again"});
  launch.open_gate();
  launch.ends(0);
  const std::string late =
      kSays + "worker 1 was restarted and did not end within 0.1 s after the others: sent ";
  assert_text(launch.all_err,
              kSays + "worker 1 exited with status 3; restarting it in 0.1 s (restart 1 of 3)\n" + late +
                  "SIGTERM\n" + late + "SIGKILL\n" + kSays +
                  "worker 1 was killed by SIGKILL after the job had ended: not restarting it\n");
}

// The limit for restarts applies to the whole job, not to each task.
void restarts_are_the_jobs(void**) {
  Launch launch(task({"-n2", "--restarts=1"},
                     {"only", "worker 0", "first", "tell", "fails", "exit", "3", "end", "end", "only",
                      "worker 0", "tell", "again", "wait", "end", "await", "exit", "4"}));
  assert_lines(launch.hear(1), {"worker 0 fails"});
  assert_lines(launch.hear(1), {"worker 0 again"});
  launch.open_gate();
  launch.ends(4);
  assert_text(launch.all_err, kSays +
                                  "worker 0 exited with status 3; restarting it in 0.1 s (restart 1 of 1)\n" +
                                  kSays + "worker 1 exited with status 4; the others were ended\n");
}

void the_whole_job(void**) {
  Launch launch(
      task({"-n3", "--restarts=2", "--restart=job"},
           {"env", "DIST_RESTART", "env",  "TF_CONFIG", "only",     "worker 1", "first", "await", "exit",
            "9",   "end",          "end",  "only",      "worker 2", "tell",     "ends",  "exit",  "0",
            "end", "first",        "trap", "TERM",      "exit",     "tell",     "up",    "wait",  "end"}));
  assert_lines(launch.hear(2), {"worker 0 up", "worker 2 ends"});
  launch.open_gate();
  // It had succeeded, and is restarted nevertheless.
  assert_lines(launch.hear(1), {"worker 2 ends"});
  launch.ends(0);
  assert_text(launch.all_err,
              kSays + "worker 1 exited with status 9; ending all tasks, and restarting them 0.1 s " +
                  "later (restart 1 of 2)\n");
  Words restarts, configs;
  for (const auto& line : sorted(lines_of(launch.all_out))) {
    (line.find("TF_CONFIG") == std::string::npos ? restarts : configs).push_back(line);
  }
  assert_lines(restarts, {"[worker 0] DIST_RESTART is not set", "[worker 0] DIST_RESTART=1",
                          "[worker 1] DIST_RESTART is not set", "[worker 1] DIST_RESTART=1",
                          "[worker 2] DIST_RESTART is not set", "[worker 2] DIST_RESTART=1"});
  assert_int_equal(configs.size(), 6);
  for (std::size_t i = 0; i < configs.size(); i += 2) assert_text(configs[i], configs[i + 1]);
}

// A success before the restart does not count after it.
void well_before_is_not_well_again(void**) {
  Launch launch(task({"-n2", "--restarts=1", "--restart=job"},
                     {"first", "only",  "worker 1", "tell", "ends", "exit", "0",    "end",
                      "end",   "first", "await",    "exit", "9",    "end",  "only", "worker 1",
                      "tell",  "again", "await",    "say",  "done", "end",  "tell", "ends"}));
  pid_t pid = -1;
  assert_lines(launch.hear(1, &pid), {"worker 1 ends"});
  until_gone(pid);
  launch.open_gate();
  // Now worker 0 ends at once, and worker 1 later.
  for (int i = 0; i < 2; ++i) {
    if (launch.hear(1, &pid)[0] == "worker 0 ends") until_gone(pid);
  }
  launch.open_gate();
  launch.ends(0);
  assert_text(launch.all_out, "[worker 1] done\n");
}

// Failures that follow from the first one are not counted or reported.
void all_fail_together(void**) {
  Launch launch(task({"-n8", "--restarts=1", "--restart=job"}, {"first", "exit", "9", "end", "say", "done"}));
  launch.ends(0);
  assert_int_equal(lines_of(launch.all_err).size(), 1);
  assert_int_equal(lines_of(launch.all_out).size(), 8);
}

void a_signal_ends_it_before_the_restart(void**) {
  for (const char* what : {"--restart=task", "--restart=job"}) {
    Launch launch(task({"-n2", "--restarts=1000000", what}, {"exit", "1"}));
    assert_words(line_of(launch.err), "exited with status 1; ");
    launch.send(SIGTERM);
    launch.ends(128 + SIGTERM);
    assert_text(launch.hear_rest(), "");
  }
}

}  // namespace

int main(int argc, char** argv) {
  take_paths(argc, argv);
  const CMUnitTest tests[] = {
      cmocka_unit_test(the_task_that_failed),
      cmocka_unit_test(until_restarts_are_used_up),
      cmocka_unit_test(a_worker_that_fails_after_the_end_is_not_started_again),
      cmocka_unit_test(a_worker_that_was_started_again_is_ended_after_the_end),
      cmocka_unit_test(restarts_are_the_jobs),
      cmocka_unit_test(the_whole_job),
      cmocka_unit_test(well_before_is_not_well_again),
      cmocka_unit_test(all_fail_together),
      cmocka_unit_test(a_signal_ends_it_before_the_restart),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
