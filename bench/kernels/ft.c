/*
 * Copyright (c) 2026 the ucx-helper-md authors. See LICENSE.
 */
#include "nas.h"

#include <complex.h>
#include <math.h>
#include <string.h>

/*
 * FT: a partial differential equation solved by three-dimensional FFTs. The
 * ranks form `columns` columns and size / columns rows. With one column this is
 * the 1D layout: planes along z are distributed, and each FFT needs one
 * transposition over all ranks; else the 2D layout, with a transposition within
 * each group of columns and one within each group of rows.
 *
 * The three arrangements of a rank's points:
 *   XYZ [nz / rows][ny / columns][nx]
 *   XZY [nz / rows][nx / columns][ny]
 *   ZXY [(nx / columns) * ny / rows][nz]
 */

typedef double complex ft_complex_t;

typedef struct ft_class {
    int nx, ny, nz;
    int iterations;
} ft_class_t;

static const ft_class_t ft_classes[] = {
    {64, 64, 64, 6},
    {128, 128, 32, 6},
    {256, 256, 128, 6},
    {512, 256, 256, 20},
    {512, 512, 512, 20}
};

#define FT_CHECKSUMS   6
#define FT_EPSILON     1e-12
#define FT_ALPHA       1e-6
#define FT_MAX_LINE    2048

/* Of the classes S, W and A, RNR-94-007 and its successors */
static const double ft_checksums[][FT_CHECKSUMS][2] = {
    {{5.546087004964e+02, 4.845363331978e+02},
     {5.546385409190e+02, 4.865304269511e+02},
     {5.546148406171e+02, 4.883910722337e+02},
     {5.545423607415e+02, 4.901273169046e+02},
     {5.544255039624e+02, 4.917475857993e+02},
     {5.542683411903e+02, 4.932597244941e+02}},
    {{5.673612178944e+02, 5.293246849175e+02},
     {5.631436885271e+02, 5.282149986629e+02},
     {5.594024089970e+02, 5.270996558037e+02},
     {5.560698047020e+02, 5.260027904925e+02},
     {5.530898991250e+02, 5.249400845633e+02},
     {5.504159734538e+02, 5.239212247086e+02}},
    {{5.046735008193e+02, 5.114047905510e+02},
     {5.059412319734e+02, 5.098809666433e+02},
     {5.069376896287e+02, 5.098144042213e+02},
     {5.077892868474e+02, 5.101336130759e+02},
     {5.085233095391e+02, 5.104914655194e+02},
     {5.091487099959e+02, 5.107917842803e+02}}
};

#define FT_PUBLISHED ((int)(sizeof(ft_checksums) / sizeof(ft_checksums[0])))

typedef struct ft {
    nas_t        nas;
    int          class_index;
    int          nx, ny, nz;
    int          columns, rows;
    int          column, row;        /* This rank's */
    MPI_Comm     along_columns;      /* Ranks of the same row */
    MPI_Comm     along_rows;
    size_t       points;             /* Of one rank */
    ft_complex_t *wave;              /* ZXY, wave numbers, evolves in time */
    ft_complex_t *field;             /* Works its way to XYZ */
    ft_complex_t *scratch;
    double       *twiddle;           /* ZXY */
    ft_complex_t roots[FT_MAX_LINE]; /* exp(2 pi i k / FT_MAX_LINE) */
} ft_t;

/* Stockham's FFT of one line: no bit reversal, results change sides each pass.
 * sign -1: forward */
static void ft_line(const ft_t *ft, ft_complex_t *line, ft_complex_t *spare,
                    int n, int sign)
{
    ft_complex_t *from = line, *to = spare, *swap;
    ft_complex_t a, b, root;
    int half, stride, j, k;

    for (half = n / 2, stride = 1; half >= 1; half /= 2, stride *= 2) {
        for (j = 0; j < half; ++j) {
            root = ft->roots[j * (FT_MAX_LINE / (2 * half))];
            root = (sign < 0) ? conj(root) : root;
            for (k = 0; k < stride; ++k) {
                a = from[k + stride * j];
                b = from[k + stride * (j + half)];
                to[k + stride * 2 * j]       = a + b;
                to[k + stride * (2 * j + 1)] = (a - b) * root;
            }
        }
        swap = from;
        from = to;
        to   = swap;
    }
    if (from != line) {
        memcpy(line, from, n * sizeof(*line));
    }
}

static void ft_lines(const ft_t *ft, ft_complex_t *data, int n, int sign)
{
    ft_complex_t spare[FT_MAX_LINE];
    size_t i;

    for (i = 0; i < ft->points; i += n) {
        ft_line(ft, data + i, spare, n, sign);
    }
}

/*
 * [outer][m / size][n] of each rank becomes [outer][n / size][m] of each, with
 * the ranks of `comm`. The packed blocks go through one MPI_Alltoall, of which
 * both buffers are the same ones at each call.
 */
static void ft_transpose(ft_t *ft, MPI_Comm comm, int outer, int m, int n)
{
    int size, rank, part, o, i, j, my_m, my_n, block;
    ft_complex_t *in, *out = ft->scratch;

    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &rank);
    my_m  = m / size;
    my_n  = n / size;
    block = outer * my_m * my_n;

    for (part = 0; part < size; ++part) {
        for (o = 0; o < outer; ++o) {
            for (j = 0; j < my_n; ++j) {
                in = ft->field + (size_t)o * my_m * n + part * my_n + j;
                for (i = 0; i < my_m; ++i) {
                    *out++ = in[(size_t)i * n];
                }
            }
        }
    }
    if (size > 1) {
        MPI_Alltoall(ft->scratch, 2 * block, MPI_DOUBLE, ft->field, 2 * block,
                     MPI_DOUBLE, comm);
        memcpy(ft->scratch, ft->field, ft->points * sizeof(*ft->field));
    }
    in = ft->scratch;
    for (part = 0; part < size; ++part) {
        for (o = 0; o < outer; ++o) {
            for (j = 0; j < my_n; ++j) {
                out = ft->field + ((size_t)o * my_n + j) * m + part * my_m;
                memcpy(out, in, my_m * sizeof(*in));
                in += my_m;
            }
        }
    }
}

/* The way back: [outer][n / size][m] to [outer][m / size][n] is the same with
 * the dimensions changed */
static void ft_forward(ft_t *ft)
{
    int my_z = ft->nz / ft->rows, my_x = ft->nx / ft->columns;

    ft_lines(ft, ft->field, ft->nx, -1);
    ft_transpose(ft, ft->along_columns, my_z, ft->ny, ft->nx);
    ft_lines(ft, ft->field, ft->ny, -1);
    ft_transpose(ft, ft->along_rows, 1, ft->nz, my_x * ft->ny);
    ft_lines(ft, ft->field, ft->nz, -1);
}

static void ft_backward(ft_t *ft)
{
    int my_z = ft->nz / ft->rows, my_x = ft->nx / ft->columns;

    ft_lines(ft, ft->field, ft->nz, 1);
    ft_transpose(ft, ft->along_rows, 1, my_x * ft->ny, ft->nz);
    ft_lines(ft, ft->field, ft->ny, 1);
    ft_transpose(ft, ft->along_columns, my_z, ft->nx, ft->ny);
    ft_lines(ft, ft->field, ft->nx, 1);
}

static void ft_initial(ft_t *ft)
{
    int my_z = ft->nz / ft->rows, my_y = ft->ny / ft->columns;
    ft_complex_t *point = ft->field;
    uint64_t seed, offset;
    double re, im;
    int x, y, z;

    for (z = 0; z < my_z; ++z) {
        offset = ((uint64_t)(ft->row * my_z + z) * ft->ny +
                  (uint64_t)ft->column * my_y) * ft->nx;
        seed   = nas_random_next(NAS_RANDOM_SEED,
                                 nas_random_power(NAS_RANDOM_A, 2 * offset));
        for (y = 0; y < my_y; ++y) {
            for (x = 0; x < ft->nx; ++x) {
                re       = nas_random(&seed, NAS_RANDOM_A);
                im       = nas_random(&seed, NAS_RANDOM_A);
                *point++ = re + im * I;
            }
        }
    }
}

/* Wave number of an index */
static double ft_wave_number(int i, int n)
{
    return (i + n / 2) % n - n / 2;
}

static void ft_twiddle(ft_t *ft)
{
    int my_x = ft->nx / ft->columns, my_xy = my_x * ft->ny / ft->rows;
    double kx, ky, kz;
    int i, z, xy;

    for (i = 0; i < my_xy; ++i) {
        xy = ft->row * my_xy + i;
        kx = ft_wave_number(ft->column * my_x + xy / ft->ny, ft->nx);
        ky = ft_wave_number(xy % ft->ny, ft->ny);
        for (z = 0; z < ft->nz; ++z) {
            kz = ft_wave_number(z, ft->nz);
            ft->twiddle[(size_t)i * ft->nz + z] =
                    exp(-4 * FT_ALPHA * M_PI * M_PI *
                        (kx * kx + ky * ky + kz * kz));
        }
    }
}

static void ft_evolve(ft_t *ft)
{
    size_t i;

    for (i = 0; i < ft->points; ++i) {
        ft->wave[i]  *= ft->twiddle[i];
        ft->field[i]  = ft->wave[i];
    }
}

static ft_complex_t ft_checksum(const ft_t *ft)
{
    int my_z = ft->nz / ft->rows, my_y = ft->ny / ft->columns;
    double total     = (double)ft->nx * ft->ny * ft->nz;
    ft_complex_t sum = 0;
    double parts[2], sums[2];
    int j, x, y, z;

    for (j = 1; j <= 1024; ++j) {
        x = j % ft->nx;
        y = 3 * j % ft->ny - ft->column * my_y;
        z = 5 * j % ft->nz - ft->row * my_z;
        if ((y >= 0) && (y < my_y) && (z >= 0) && (z < my_z)) {
            sum += ft->field[((size_t)z * my_y + y) * ft->nx + x];
        }
    }
    parts[0] = creal(sum);
    parts[1] = cimag(sum);
    MPI_Allreduce(parts, sums, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return (sums[0] + sums[1] * I) / total;
}

/* For classes without published sums: there and back again */
static int ft_round_trip(ft_t *ft)
{
    double total = (double)ft->nx * ft->ny * ft->nz;
    ft_complex_t before, after;

    ft_initial(ft);
    before = ft_checksum(ft);
    ft_forward(ft);
    ft_backward(ft);
    after = ft_checksum(ft) / total;
    return cabs(after - before) <= FT_EPSILON * cabs(before);
}

static void ft_setup(ft_t *ft, int *argc, char ***argv)
{
    const ft_class_t *c;
    int i;

    ft->class_index = nas_init(&ft->nas, "ft", "SWABC", argc, argv);
    c               = &ft_classes[ft->class_index];
    ft->nx          = c->nx;
    ft->ny          = c->ny;
    ft->nz          = c->nz;
    ft->columns     = ft->nas.columns;
    ft->rows        = ft->nas.size / ft->columns;
    if ((ft->rows * ft->columns != ft->nas.size) || (c->nz % ft->rows) ||
        (c->nx % ft->columns) || (c->ny % ft->columns) ||
        (c->nx / ft->columns * c->ny % ft->rows)) {
        nas_fatal(&ft->nas, "%d ranks in %d columns do not divide the grid",
                  ft->nas.size, ft->columns);
    }
    ft->column = ft->nas.rank % ft->columns;
    ft->row    = ft->nas.rank / ft->columns;
    MPI_Comm_split(MPI_COMM_WORLD, ft->row, ft->column, &ft->along_columns);
    MPI_Comm_split(MPI_COMM_WORLD, ft->column, ft->row, &ft->along_rows);

    ft->points  = (size_t)c->nx * c->ny * c->nz / ft->nas.size;
    ft->wave    = nas_alloc(ft->points * sizeof(*ft->wave));
    ft->field   = nas_alloc(ft->points * sizeof(*ft->field));
    ft->scratch = nas_alloc(ft->points * sizeof(*ft->scratch));
    ft->twiddle = nas_alloc(ft->points * sizeof(*ft->twiddle));
    for (i = 0; i < FT_MAX_LINE; ++i) {
        ft->roots[i] = cexp(2 * M_PI * I * i / FT_MAX_LINE);
    }
}

int main(int argc, char **argv)
{
    static ft_t ft;
    int is_published, iterations, iteration;
    int is_good = 1;
    const double *expected;
    ft_complex_t sum;

    ft_setup(&ft, &argc, &argv);
    is_published = (ft.class_index < FT_PUBLISHED);
    iterations   = nas_iterations(&ft.nas,
                                  ft_classes[ft.class_index].iterations);
    if (!is_published) {
        is_good = ft_round_trip(&ft);
    }
    ft_twiddle(&ft);

    nas_start(&ft.nas);
    ft_initial(&ft);
    ft_forward(&ft);
    memcpy(ft.wave, ft.field, ft.points * sizeof(*ft.wave));
    for (iteration = 0; iteration < iterations; ++iteration) {
        ft_evolve(&ft);
        ft_backward(&ft);
        sum = ft_checksum(&ft);
        if (is_published && (iteration < FT_CHECKSUMS)) {
            expected = ft_checksums[ft.class_index][iteration];
            is_good  = is_good &&
                       nas_is_close(creal(sum), expected[0], FT_EPSILON) &&
                       nas_is_close(cimag(sum), expected[1], FT_EPSILON);
        }
    }
    return nas_finish(&ft.nas, iterations, is_good);
}
