#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Reads the headers' functions and the table "Calls" of TRANSCRIPTS.md, and generates code for the recorder and the
# player. The table lists the functions that are recorded. A function that is neither in the table, nor in SILENT, nor
# reserved for programs with gRPC gets no wrapper definition, and a program that calls it does not link.
#
#     functions.py api.json TRANSCRIPTS.md --list FILE    lines FUNCTION(RETURNS, NAME, (PARAMETERS), (ARGUMENTS), KEYS...)
#     functions.py api.json TRANSCRIPTS.md --grpc FILE    lines BY_GRPC(RETURNS, NAME, (PARAMETERS), (ARGUMENTS))
#     functions.py api.json TRANSCRIPTS.md --wrap FILE    the linker's options
import argparse
import json
import re
import sys

# Not written into transcripts: information that the lines contain anyway, and the lifetimes of values.
SILENT = {'dist_last_error', 'dist_fail', 'dist_status_name', 'dist_value_retain', 'dist_value_release',
          'dist_value_kind_of', 'dist_value_size', 'dist_value_key', 'dist_value_text', 'dist_value_variable',
          'dist_value_partition', 'dist_device_assignment_topology'}

# For programs that use gRPC. They are linked with the others but are not in transcripts: a recorded program
# that calls them is an error.
GRPC_FILES = {'experimental/rpc.h', 'experimental/server.h', 'experimental/coordinator.h'}
GRPC_TOO = {'dist_value_wrap_object', 'dist_value_object'}

# Functions whose entries in the recorder and the player are hand-written.
BY_HAND = {'dist_slurm_expand_host_list'}


def recorded(manual):
    """Returns the names in the first column of the table "Calls"."""
    section = manual.split('\n## Calls\n')[1].split('\n## ')[0]
    names = []
    for row in section.splitlines():
        if row.startswith('| `'):
            names += re.findall(r'`(\w+)`', row.split('|')[1])
    return ['dist_' + name for name in names]


def entry(macro, function, *more):
    """Returns a line of C for a function: MACRO(RETURNS, NAME, (PARAMETERS), (ARGUMENTS), MORE...)."""
    words = [one['name'] for one in function['parameters']]
    parameters = [f"{one['text']} {one['name']}" for one in function['parameters']]
    cells = [function['returns']['text'], function['name'], f'({", ".join(parameters) or "void"})',
             f'({", ".join(words)})', *more]
    return f'{macro}({", ".join(cells)})\n'


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument('api')
    arguments.add_argument('manual')
    arguments.add_argument('--list')
    arguments.add_argument('--grpc')
    arguments.add_argument('--wrap')
    given = arguments.parse_args()
    with open(given.api, encoding='utf-8') as file:
        functions = {one['name']: one for one in json.load(file)['functions']}
    with open(given.manual, encoding='utf-8') as file:
        names = recorded(file.read())
    unknown = [name for name in [*names, *SILENT] if name not in functions]
    if unknown or len(set(names)) != len(names):
        sys.exit(f'{given.manual}: not declared, or there twice: {unknown}')
    if given.list:
        with open(given.list, 'w', encoding='utf-8') as file:
            for name in names:
                if name not in BY_HAND:
                    keys = [f'"{one["name"]}"' for one in functions[name]['parameters']]
                    file.write(entry('FUNCTION', functions[name], *keys))
    if given.grpc:
        with open(given.grpc, 'w', encoding='utf-8') as file:
            for name, function in functions.items():
                if name not in names and (function['file'] in GRPC_FILES or name in GRPC_TOO):
                    file.write(entry('BY_GRPC', function))
    if given.wrap:
        with open(given.wrap, 'w', encoding='utf-8') as file:
            file.writelines(f'--wrap={name}\n' for name in sorted(functions) if name not in SILENT)
            file.write('--wrap=setenv\n--wrap=unsetenv\n--wrap=golden_on_workers\n')


main()
