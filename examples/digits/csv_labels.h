// SPDX-License-Identifier: Apache-2.0
//
// Label texts become classes: the half of the CSV reader that needs no file.
#pragma once

#include "csv.h"

/** Fills table->labels, classes and class_names from the text of each row. NULL, or what was wrong. */
const char *csv_labels_to_classes(char *const *texts, csv_table *table);
