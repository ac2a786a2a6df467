// SPDX-License-Identifier: Apache-2.0
//
// A program that never defines DIST_EXPERIMENTAL.
// clang-format off
#include <dist/dist.hpp>

#include "hpp_program.hpp"
// clang-format on

parts::outcome parts::of_the_baseline() { return program(dist::strategy(2)); }
