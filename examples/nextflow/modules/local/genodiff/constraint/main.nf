process GENODIFF_CONSTRAINT {
    tag "${meta.id}"
    label 'process_medium'

    conda "${moduleDir}/environment.yml"
    // There is no image of a release yet: build one with the Containerfile of genodiff.
    container "genodiff:0.1.0"

    input:
    tuple val(meta), path(genome), path(relatives, stageAs: 'relatives/*'), path(genes)

    output:
    tuple val(meta), path("${prefix}/*.bw"), emit: tracks
    tuple val(meta), path("${prefix}/elements.bed"), emit: elements
    tuple val(meta), path("${prefix}/constraint.html"), emit: page
    tuple val(meta), path("${prefix}/classes.tsv"), emit: classes, optional: true
    tuple val(meta), path("${prefix}"), emit: hub
    tuple val("${task.process}"), val('genodiff'), eval("genodiff --version | sed -n 1p"), topic: versions, emit: versions_genodiff

    when:
    task.ext.when == null || task.ext.when

    script:
    def args = task.ext.args ?: ''
    prefix = task.ext.prefix ?: "${meta.id}"
    def annotation = genes ? "--genes ${genes}" : ''
    """
    GENODIFF_CACHE=\$PWD/cache genodiff constraint \\
        ${genome} \\
        --relatives relatives/* \\
        ${annotation} \\
        --threads ${task.cpus} \\
        ${args} \\
        --out ${prefix}
    """

    stub:
    prefix = task.ext.prefix ?: "${meta.id}"
    """
    mkdir ${prefix}
    touch ${prefix}/rs.bw ${prefix}/elements.bed ${prefix}/constraint.html
    """
}
