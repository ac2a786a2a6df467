// SPDX-License-Identifier: Apache-2.0
//
// Maps label texts to classes. This is the part of the CSV reader that does not touch the file.
#pragma once

#include "csv.h"

/**
 * Fills table->labels, classes and class_names from the label text of each row. Returns NULL, or an error
 * message.
 */
const char *csv_labels_to_classes(char *const *texts, csv_table *table);
