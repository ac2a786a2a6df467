// SPDX-License-Identifier: Apache-2.0

package org.libdist;

/**
 * What a replica's run sees of a series: {@link Replica#version}.
 *
 * @param content what was published, not to be used after the run
 * @param number its number
 */
public record Version<T>(T content, long number) {}
