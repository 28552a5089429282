/* stat: shows another implementation what stat makes of numbers. Each line of the input is a function's name, what it
 * takes besides, then samples as a count and so many numbers; the answer is a line of numbers. One thread.
 * Must not know what the answer should be. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stat/stat.h"

static double number(void)
{
    double value;
    if (scanf("%lf", &value) != 1)
        exit(2);
    return value;
}

static double *sample(size_t *n)
{
    *n = (size_t)number();
    double *values = calloc(*n + 1, sizeof(*values));
    if (!values)
        exit(2);
    for (size_t i = 0; i < *n; i++)
        values[i] = number();
    return values;
}

static void put_estimate(tare__estimate estimate)
{
    printf("%.17g %.17g %.17g\n", estimate.value, estimate.low, estimate.high);
}

static void two_samples(const char *name)
{
    double confidence = strcmp(name, "mann_whitney") != 0 ? number() : 0;
    size_t n, m;
    double *base = sample(&n), *head = sample(&m);
    if (strcmp(name, "mann_whitney") == 0) {
        tare__rank_test test = tare__mann_whitney(base, n, head, m);
        printf("%.17g %.17g %.17g %d\n", test.u, test.p, test.superiority, test.exact);
    } else if (strcmp(name, "shift") == 0) {
        put_estimate(tare__shift(base, n, head, m, confidence));
    } else if (strcmp(name, "paired_test") == 0) {
        tare__sequential test = tare__paired_test(base, head, n < m ? n : m, confidence);
        printf("%.17g ", test.p);
        put_estimate(test.ratio);
    } else {
        exit(2);
    }
    free(base);
    free(head);
}

static void outliers(void)
{
    size_t n;
    double *values = sample(&n);
    tare__outlier *labels = calloc(n + 1, sizeof(*labels));
    if (!labels || tare__outliers_tukey(values, n, labels, NULL) != 0)
        exit(2);
    for (size_t i = 0; i < n; i++)
        printf("%d ", (int)labels[i]);
    printf("\n");
    free(labels);
    free(values);
}

int main(void)
{
    char name[64];
    while (scanf("%63s", name) == 1) {
        if (strcmp(name, "normal") == 0) {
            double z = number();
            printf("%.17g %.17g\n", tare__normal_above(z), tare__normal_quantile(tare__normal_above(z)));
        } else if (strcmp(name, "student") == 0) {
            double t = number();
            printf("%.17g\n", tare__student_two_sided(t, number()));
        } else if (strcmp(name, "tukey") == 0) {
            outliers();
        } else {
            two_samples(name);
        }
    }
    return 0;
}
