# Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
#
# What the programs here share; sourced by each at its end. A program is one of
# Debian's packages, for Open MPI, with an input made here:
#   NAME input quick|default|full   write the input into this folder and print
#                                   the command; 77 where a package is missing
#   NAME check                      was it well? Its output is in ./stdout
# It sets program_packages and program_files, which belong to them and must be
# there, and defines program_input LEVEL and program_check.

case ${1:-}:${2:-} in
input:quick|input:default|input:full)
    for program_file in "${program_files[@]}"; do
        if [ ! -e "$program_file" ]; then
            echo "no $program_file: install ${program_packages[*]}" >&2
            exit 77
        fi
    done
    program_input "$2"
    ;;
check:)
    program_check
    ;;
*)
    echo "usage: ${0##*/} input quick|default|full | check" >&2
    exit 2
    ;;
esac
