/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 *
 * The entry points. Arguments differ between the MPIs (a handle is a pointer or
 * an int), so these pass on whatever came, registers and stack: each jumps
 * where its slot says. A slot begins with a detour that has all of them set.
 */
#define __ASSEMBLER__ 1
#include "entries.h"

#if defined(__x86_64__)

#define ENTRY(_name) \
    .globl MPI_##_name; \
    .globl PMPI_##_name; \
    .type MPI_##_name, %function; \
    .type PMPI_##_name, %function; \
    MPI_##_name: \
    PMPI_##_name: \
    endbr64; \
    jmp *.Lslot_##_name(%rip); \
    .Lfirst_##_name: \
    endbr64; \
    leaq .Lslot_##_name(%rip), %r11; \
    jmp .Lresolve;
#define SLOT(_name) .Lslot_##_name: .quad .Lfirst_##_name;

    .text
.Lresolve:
    pushq %rdi
    pushq %rsi
    pushq %rdx
    pushq %rcx
    pushq %r8
    pushq %r9
    pushq %rax
    pushq %r11
    subq $8, %rsp
    call mpi_pipeline_stub_resolve
    addq $8, %rsp
    popq %r11
    popq %rax
    popq %r9
    popq %r8
    popq %rcx
    popq %rdx
    popq %rsi
    popq %rdi
    jmp *(%r11)

#elif defined(__aarch64__)

#define ENTRY(_name) \
    .globl MPI_##_name; \
    .globl PMPI_##_name; \
    .type MPI_##_name, %function; \
    .type PMPI_##_name, %function; \
    MPI_##_name: \
    PMPI_##_name: \
    hint 34; \
    adrp x16, .Lslot_##_name; \
    ldr x16, [x16, :lo12:.Lslot_##_name]; \
    br x16; \
    .Lfirst_##_name: \
    hint 34; \
    adrp x17, .Lslot_##_name; \
    add x17, x17, :lo12:.Lslot_##_name; \
    b .Lresolve;
#define SLOT(_name) .Lslot_##_name: .quad .Lfirst_##_name;

    .text
.Lresolve:
    stp x29, x30, [sp, #-96]!
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    stp x4, x5, [sp, #48]
    stp x6, x7, [sp, #64]
    stp x8, x17, [sp, #80]
    bl mpi_pipeline_stub_resolve
    ldp x0, x1, [sp, #16]
    ldp x2, x3, [sp, #32]
    ldp x4, x5, [sp, #48]
    ldp x6, x7, [sp, #64]
    ldp x8, x17, [sp, #80]
    ldp x29, x30, [sp], #96
    ldr x16, [x17]
    br x16

#else
#  error "no entry points for this processor"
#endif

    .hidden mpi_pipeline_stub_resolve
    MPI_PIPELINE_ENTRIES(ENTRY)

    .data
    .balign 8
    .globl mpi_pipeline_stub_slots
    .hidden mpi_pipeline_stub_slots
mpi_pipeline_stub_slots:
    MPI_PIPELINE_ENTRIES(SLOT)

    .section .note.GNU-stack, "", %progbits
