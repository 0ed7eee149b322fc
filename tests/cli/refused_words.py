"""Words of commands that are refused: the exit code, and a part of the one line that says why.

A row is `CODE WORDS :: PART`; ~ stands for the words of `usual`.
"""

import shlex
from typing import NamedTuple

from tests.tiny_run import VCF, genome_text

FRAME = "".join(f">chr{i}\n{letters}\n" for i, letters in (
    (1, "ACGTTGCANNGATTACAGGCCTATC" * 6), (2, "GGATC"), ("n", "NNNNNN"),
))  # fmt: skip
LABELLED = "seq,label\n" + "".join(
    f"{'ACGT'[i % 4] * 9}ACGTTA{'CA' * i},{i % 2}\n" for i in range(24)
)


class Table(NamedTuple):
    """Rows of one verb, the files beside them, and words that stand before those of a row."""

    given: str
    rows: str
    usual: str = ""
    files: dict[str, str | bytes] = {}  # noqa: RUF012
    more: str = ""

    def list_rows(self) -> list[tuple[list[str], int, str]]:
        """(words, exit code, part of the line) of each row."""
        found = []
        for row in self.rows.strip().splitlines():
            left, said = row.strip().split(" :: ")
            code, _, words = left.replace("~", self.usual).partition(" ")
            found.append((shlex.split(f"{self.given} {words} {self.more}"), int(code), said))
        return found


REFUSED = {
    "redesign": Table("redesign RUN -o o.fa --max-states 1000 --threads 1", r"""
        2 ~ --require GAATTC --enzymes EcoRI :: require GAATTC; enzymes EcoRI
        2 ~ --max-edits 0 --gc 99-100% :: GC 99-100 %; at most 0 edits
        2 ~ --keep c1:301-320 :: every base of the regions is fixed
        2 ~ --keep c1:310-312 --keep c1:321-330 :: --keep c1:321-330 is outside all regions; give
        2 ~ --keep c2:301-320 :: --keep c2:301-320 is outside all regions
        2 ~ --protein c1:321-329 :: --protein c1:321-329 is outside all regions
        2 ~ --no-stop c1:298-300:- :: --no-stop c1:298-300 is outside all regions
        2 ~ --enzymes EcoR1 :: did you mean 'EcoR
        2 ~ --avoid GAXTC :: 'X' is no base
        2 ~ --gc lots :: write 0.3-0.7
        2 ~ --gc 40-60%/10 :: need more than 1,000 states
        2 ~ --protein forward :: no multiple of three
        2 ~ --protein c1:5999-6010 :: past the end
        2 ~ --genetic-code 99 :: no genetic code 99; NCBI's numbers are 1, 2
        2 ~ --genetic-code 11 :: --genetic-code is of a reading frame
        2 ~ --strength 2 :: no guidance
        2 ~ --no-repeats vector.fa :: 20:vector.fa
        3 ~ --no-repeats 9:none.fa :: none.fa
        2 ~ --temperature 0 :: temperature above 0
        3 ~ --constraints none.yaml :: none.yaml
        3 ~ --constraints bad.yaml :: bad.yaml, line 
        3 ~ --constraints key.yaml :: did you mean 'avoid'
        2 ~ --constraints run.yaml --max-run 4 :: --max-run 4
        3 ~ --constraints none.json :: none.json
        3 ~ --constraints list.json :: list.json: holds no constraints
        3 ~ --constraints empty.bed :: empty.bed: holds no constraints
        3 ~ --constraints number.yaml :: 'five' is no whole number
        3 ~ --constraints text.yaml :: 7 is no text
        3 ~ --constraints bytes.yaml :: bytes.yaml: is not UTF-8
        3 ~ --constraints twice.yaml :: line 2: is not valid YAML: duplicate key
        3 ~ --constraints dash.yaml :: dash.yaml: max_run is given twice
        3 ~ --constraints deep.json :: nested too deeply
        2 ~ --constraints exons.yaml :: give exons of one contig
        3 ~ --constraints . :: cannot be read
        2 ~ --codon-usage e_coli :: --codon-usage is of a kept protein
        2 ~ --protein GAL1 :: --protein 'GAL1' is no place; names of genes are not
        2 --fasta in.fa :: --bed or --region
        2 --bed r.bed :: neither --fasta nor --template
        3 --fasta in.fa --bed empty.bed :: empty.bed
        2 --fasta in.fa --region c1:5990-6001 :: past the end of c1
        2 --fasta in.fa --region c9:1-5 :: no contig 'c9'
        2 --fasta in.fa --region c1:20-10 :: c1:20-10
        2 --fasta in.fa --region c1:0-10 :: c1:0-10
        3 --fasta in.fa --bed past.bed :: past.bed, line 2
        3 --fasta in.fa --bed no_width.bed :: no_width.bed: holds no interval
        3 --fasta in.fa --bed contig.bed :: contig.bed, line 1
        2 --fasta in.fa --template in.fa :: --fasta and --template
        2 --template in.fa --max-edits 3 :: --max-edits
        2 --template in.fa --region c1:1-5 :: --template
        3 --template t.fa --protein forward :: t:1-6: codon ACN
        2 --template in.fa --vcf x.vcf :: VCF
        2 ~ --from-noise 0 :: --from-noise 0 is no time of the noise
        2 ~ --from-noise 1.5 :: --from-noise 1.5 is no time of the noise
        2 ~ --from-noise nan :: --from-noise nan is no time of the noise
        2 ~ --from-noise much :: from-noise
        2 ~ --from-noise 0.3 --max-run 5 :: --from-noise draws each base independently, and constr
        2 ~ --from-noise 0.3 --guidance smc --oracle gc:gc :: --oracle gc:gc
        2 ~ --sampler uniform-ancestral :: does not go with objective mdlm
        2 --template t.fa --from-noise 0.3 :: a template has no bases to change
        2 ~ --vcf o.fa :: two outputs
        2 ~ --changes in.fa :: is read
        """, "--fasta in.fa --region c1:301-320", {
            "in.fa": genome_text(), "r.bed": "c1\t300\t345\n", "empty.bed": "",
            "bad.yaml": "avoid: [GAATTC]\nmax_run: [\n", "key.yaml": "avoyd: [GAATTC]\n",
            "run.yaml": "max_run: 5\n", "list.json": '["GAATTC"]\n', "deep.json": "[" * 3000,
            "number.yaml": "max_run: five\n", "text.yaml": "avoid: [7]\n",
            "twice.yaml": "avoid: [GAATTC]\navoid: [GGTCTC]\n", "bytes.yaml": b"avoid: \xff\xfe\n",
            "dash.yaml": "max_run: 3\nmax-run: 4\n", "t.fa": ">t\nACNNNN\n",
            "exons.yaml": 'protein: [{exons: ["c1:1-3", "c2:4-6"]}]\n',
            "past.bed": "c1\t1\t9\nc1\t5990\t6001\n", "no_width.bed": "c1\t9\t9\n",
            "contig.bed": "c9\t1\t9\n",
        }),
    "sample": Table("sample . --threads 1", r"""
        2 --fasta out.embl :: --out out.embl: sequences are written as FASTA
        2 ~ --num 0 :: below 1
        2 ~ --num -3 :: -3
        5 ~ --num 1000000000000000 :: space
        5 ~ --num 1000000000000000000000000000000 :: space
        2 ~ --temperature nan :: temperature
        2 ~ --temperature -1 :: temperature
        2 ~ --temperature hot :: temperature
        2 ~ --top-p 0 :: top-p
        2 ~ --length 0 :: length
        2 ~ --length -5 :: length
        5 ~ --length 100000000000000000 :: space
        5 ~ --n 4 --length 10000000000 --batch-size 10000000 :: needs
        2 ~ --steps 0 :: steps
        2 ~ --steps 1.5 :: 1.5
        2 ~ --n 2.5 :: 2.5
        2 ~ --seed 0.5 :: 0.5
        2 --fasta --n :: --fasta
        2 --fasta "" :: --fasta
        2 ~ --stride 0 :: stride
        2 ~ --batch-size 0 :: batch
        2 ~ --line-width -1 :: line-width
        2 ~ --sampler ancestrol :: did you mean 'ancestral'
        2 ~ --seed -1 :: seed
        2 ~ --tempurature 1 :: --temperature
        2 ~ --domain text :: text
        2 ~ --template in.fa --length 5 :: --length
        3 ~ --template absent.fa :: absent.fa
        3 ~ --template bad.fa :: line 2
        5 ~ --sidecar somedir :: directory
        5 --fasta somedir :: directory
        5 --fasta /dev/full :: /dev/full
        5 --fasta in.fa/out.fa :: directory
        """, "--fasta out.fa", {
            "in.fa": ">a\nACNN\n", "bad.fa": ">a\nAC!N\n", "somedir/": "",
        }),
    "sample of a run": Table("sample RUN --threads 1 --fasta o.fa", r"""
        3 ~ --bed far.bed :: far.bed, line 2
        3 ~ --bed unknown.bed :: did you mean 'c1'
        3 ~ --bed empty.bed :: empty.bed
        2 ~ --region c1:5990-6001 :: past the end of c1
        2 ~ --region chra:1-5 :: no contig 'chra'
        2 ~ --region c1:0-5 :: start at 1
        2 --bed gaps.bed :: no file to write; give --out FILE
        2 --only-filled ~ :: --bed and --region
        2 --bed far.bed --template - :: in a file
        2 --stride 65 :: stride
        2 --seed 18446744073709551616 :: seed
        2 --sampler remdm-cap --sampler-option etta=0.1 :: eta
        2 --sampler ancestral --sampler-option eta=0.1 :: leave --sampler-option out
        2 --sampler remdm-cap --sampler-option eta=2 :: between 0 and 1
        2 --sampler remdm-cap --sampler-option eta :: NAME=NUMBER
        2 --sampler remdm-cap --sampler-option eta=much :: NAME=NUMBER
        2 --sampler entropy-bounded --sampler-option bound=inf :: finite
        2 --sampler p2 --sampler-option noise=0.5 :: neither 0 nor 1
        2 --bits-lost 1 --steps 8 :: give one
        2 --bits-lost 0 :: above 0
        2 --bits-lost 1 --sampler confidence :: ancestral
        2 --oracle oracles:gc :: no guidance
        """, "--template in.fa", {
            "in.fa": genome_text(), "far.bed": "c1\t5\t6\nc1\t5990\t6001\n",
            "unknown.bed": "chr1\t5\t6\n", "empty.bed": "",
        }),
    "ism": Table("ism RUN --fasta ref.fa --threads 1", r"""
        2 -o o.vcf :: ends in none of
        2 -o o.svg :: one region
        2 -o o.pdf :: a .pdf is of one region, and there are 3
        2 ~ --genes ref.fa :: --out x.svg
        2 ~ --label x :: fine-tuned
        2 ~ --region chr3:1-5 :: chr3
        2 ~ --context 1 :: context
        """, "-o o.tsv", {"ref.fa": FRAME}),
    "dependencies": Table("dependencies RUN --fasta ref.fa --threads 1", r"""
        2 -o o.tsv --every 1 :: below 2
        2 -o ref.fa :: ends in none of
        2 -o - --json :: stdout
        """, "", {"ref.fa": FRAME}),
    "score": Table("score in.vcf --model no-such-run --fasta ref.fa --threads 1", r"""
        2 ~ --shard 4/3 :: no shard
        2 ~ --se 0 :: no standard error
        2 ~ --context 3x :: 3x
        2 ~ --batch-size 0 :: below 1
        2 ~ --max-evaluations 103 :: --max-evaluations 103 is below 104
        2 -o x.txt :: none of the endings
        2 ~ --method both :: both
        2 -o ref.fa :: is read and cannot be written
        2 ~ --json :: --json is for stdout
        2 ~ --region chr9:1-2 :: no contig 'chr9'
        2 ~ --context 1 :: below 2
        2 ~ --load l.tsv :: --load without --relatives
        2 ~ --load l.tsv --relatives ref.fa --shard 1/2 :: --load counts all
        2 ~ --load ref.fa --relatives ref.fa :: is read
        """, "-o o.vcf", {"ref.fa": FRAME, "in.vcf": f"{VCF}chr1\t4\t.\tT\tA\t.\t.\t.\n"}),
    "tracks": Table("tracks RUN --fasta ref.fa --threads 1 -q", r"""
        2 ~ --region chr3:1-5 :: chr3
        2 ~ --region chr1:100-900 :: past the end
        3 ~ --region chrn :: A, C, G or T
        3 ~ --bed empty.bed :: empty.bed
        3 ~ --bed far.bed :: line 1
        2 ~ --bed far.bed --region chr1 :: exclude
        2 ~ --every 1 :: below 2
        2 ~ --context 4 :: below 8
        2 ~ --genome 'my genome' :: --genome
        2 ~ --email nobody :: --email
        2 ~ --shard 4/3 :: --shard
        2 ~ --shard 1/3 :: .npy
        2 ~ --region chr1:5-9 --region chr2 --format png :: one region
        2 ~ --genes empty.bed --format npz :: --format html
        3 ~ --genes empty.bed :: no gene
        2 -o o.npy --region chr2 --shard 1/9 :: none of 1
        2 -o o.bw :: folder
        2 -o - :: folder
        2 -o ref.fa :: is read
        """, "-o o", {
            "ref.fa": FRAME, "empty.bed": "# nothing\n", "far.bed": "chr1\t10\t2000\n",
        }),
    "tracks of text": Table("tracks TEXT --fasta ref.fa --threads 1 -o o", """
        2  :: DNA
        2 --relatives ref.fa :: DNA
        """, "", {"ref.fa": FRAME}),
    "embed": Table("embed RUN --fasta in.fa --threads 1", """
        2 ~ --layer 2 :: layer 2 is not among 0 to 1
        2 ~ --layer 1 --layer -1 :: twice
        2 -o e.txt :: .npz, .parquet
        2 -o e.csv --pool none :: .csv has a row for each window
        3 ~ --bed none.bed :: none.bed
        2 ~ --regions c9:1-2 :: c9
        2 ~ --batch-size 0 :: --batch-size
        2 ~ --pool cls :: cls
        """, "-o e.npz", {"in.fa": genome_text()}),
    "eval": Table("eval", """
        2 RUN --split tset :: split
        2 RUN --repeats 0 :: --repeats 0
        2 RUN --batch-size 0 :: --batch-size 0
        2 RUN --max-windows -1 :: --max-windows -1
        2 RUN --max-minutes 0 :: --max-minutes 0
        2 RUN --max-minutes nan :: --max-minutes nan
        2 RUN --soft-masked 2 :: soft-masked
        4 RUN --domain text :: dna model
        3 RUN --fasta nowhere.fa :: nowhere.fa
        3 RUN --bed nowhere.bed :: nowhere.bed
        4 . :: model.json: is missing
        4 absent :: absent
        """, more="--threads 1"),
    "text": Table("", """
        2 train hg38 --domain text :: 'hg38' is a recipe of dna, and --domain says text
        2 train tinyshakespeare --domain dna :: is a recipe of text, and --domain says dna
        2 train tinyshakespeare --fasta x.fa :: --fasta does not go with 'tinyshakespeare'
        2 train hg38 --text x.txt :: --text does not go with 'hg38'
        2 train song.txt --text x.txt --domain text :: are two texts
        2 train song.txt :: give the file with --fasta (DNA), or give --domain text
        2 train wikitext --domain text :: did you mean 'wikitext2'
        2 train lm1b --domain text :: 'lm1b' comes as lm1b-packed and lm1b-padded; name one of them
        2 train song.txt --domain text --tokenizer nosuch :: no tokenizer 'nosuch'
        2 train song.txt --domain text --preset caduceus-ps-tiny :: strands: single
        3 train tinyshakespeare --offline :: get https://raw.githubusercontent.com
        4 sample TEXT --fasta x.fa :: is a text model; give --out FILE
        2 sample TEXT --domain text --fasta x.fa :: --fasta is for DNA
        2 sample TEXT --domain text :: no file to write; give --out FILE
        4 sample TEXT --out - --domain dna :: is a text model
        2 sample TEXT --out - --prompt ~~~ :: the prompt has 99 tokens
        3 sample TEXT --out - --template song.txt :: has no gap to fill; write [[20]]
        4 eval TEXT --domain dna :: is a text model; give a dna run
        2 eval TEXT --fasta x.fa :: --fasta is for DNA, and this is a text run
        4 sample RUN -o - --domain text :: is a dna model
        2 eval RUN --text song.txt :: --text is for text, and this is a DNA run
        3 data check nosuch.txt --domain text :: no such file
        """, "x" * 33, {"song.txt": "the night is long and the moon is pale\n" * 9}, "-q"),
    "uniform noise": Table("", """
        2 redesign UNIFORM ~ -o d.fa --avoid GGTCTC :: uniform noise draws each base independently
        2 redesign UNIFORM ~ -o d.fa --sampler confidence :: does not go with objective uniform
        2 ism UNIFORM ~ -o m.tsv :: has never seen a mask
        2 eval UNIFORM --order left-to-right :: --order needs masked noise
        2 eval UNIFORM --block 4 :: --block is for masked diffusion
        2 eval UNIFORM --context contig :: contig
        2 sample UNIFORM --fasta x.fa --memory on :: --memory is for masked
        2 sample UNIFORM --fasta x.fa --block 4 :: --block is for masked
        2 sample UNIFORM --fasta x.fa --sampler confidence :: does not go with objective uniform
        2 sample UNIFORM --fasta x.fa --allow-n :: --allow-n is for networks
        2 sample UNIFORM --fasta x.fa --sampler-option correct=2 :: correct = 2
        2 train toy --mask-share 0.5 :: objective mdlm has no setting 'mask_share'
        2 train toy --objective uniform --mask-share 1.5 :: share
        2 train toy --objective uniform --mask-share x :: share
        2 train toy --objective uniform --memory :: --memory is for masked
        2 train toy --objective uniform --block 4 :: no setting 'block'
        """, "--fasta in.fa --region c1:301-320", {"in.fa": genome_text()}, "--threads 1 -q"),
    "blocks": Table("", """
        2 eval RUN --block 0 :: 1 or more
        2 eval RUN --block 8 --order random :: block
        2 eval RUN --block 8 :: single strands
        2 sample RUN --block 8 -n 1 --length 9 --stride 4 --fasta o.fa :: block
        2 train toy --preset caduceus-ps-tiny --block 8 --out new :: strand
        2 train toy --objective mdlm --strands single --block 8 --out new :: block
        """, more="--threads 1 -q"),
    "train": Table("", """
        2 train toy --bogus 1 :: bogus
        2 train toy --lr nan :: optim.lr
        2 train toy --resume gone :: gone
        2 train toy --resume r --from-scratch :: exclude
        4 train toy --init x :: x: is not there
        2 train toy --domain text :: text
        3 train hg38 --offline :: --fasta
        3 train hg38 --offline --out above/run :: --offline forbids
        2 train mine.fa --fasta mine.fa :: 'mine.fa' and --fasta are two genomes
        2 train mine.fa --text a.txt :: 'mine.fa' is DNA, and --text is given
        2 train --fasta mine.fa --text a.txt :: --text and --fasta exclude each other
        2 train run :: 'run' is a run, not data; `genodiff train --resume run` resumes it
        2 train a.txt :: 'a.txt' is a file, not a recipe
        2 train . :: '.' is a file, not a recipe
        4 checkpoint check gone :: gone
        2 demo --minutes 0 --out x :: --minutes
        4 report . :: holds no config.yaml
        2 --show-completion tcsh :: tcsh
        """, "", {
            "mine.fa": f">chr1\n{'ACGTTGCAAC' * 90}\n", "a.txt": "some words\n",
            "run/config.yaml": "recipe: toy\n",
        }),
    "finetune": Table("finetune", """
        2 check gue/tf/9 :: did you mean 'tf/
        2 check gue :: give gue/TASK
        3 check nowhere :: nowhere: no such file
        2 list gui :: did you mean 'gue'
        3 check gue/tf/0 --data nowhere :: nowhere: the data of gue are not here
        2 audit genomic-benchmarks/human_enhancers_cohn --reference a --data . :: expected NAME=
        2 gue --task mouse/9 --model majority :: no task 'mouse/9' in gue
        3 gue --task mouse/3 --data . --model majority --out o --offline :: the published data 952
        3 report . :: results.jsonl
        2 genomic-benchmarks --reference hg38 --model majority :: NAME=FASTA
        2 ~ --model yeast --rc augment -q :: reads both; give --rc conjoin
        2 ~ --model yeast --rc average -q :: reads both; give --rc conjoin
        2 ~ --model scratch:caduceus-ph-tiny --rc conjoin -q :: --rc average
        2 ~ --model none -q :: 'none' has no network
        2 ~ --model none scratch -q :: 'none' has no network
        2 ~ --model majorty :: did you mean 'majority'
        2 ~ --seeds 0 :: --seeds 0 is below 1
        2 ~ --seeds 1.5 :: not a whole number
        2 ~ --lr -1 :: lr
        4 ~ --model no/such/run :: not there
        2 ~ --label nosuch :: no column 'nosuch'
        2 ~ --metric speed :: metric
        """, "table --train train.csv --test test.csv --out out", {
            "train.csv": LABELLED, "test.csv": LABELLED.replace("TTA", "GTA"),
        }),
    "no network": Table("", """
        2 sample none --relatives near.fa --fasta o.fa :: has no genome of its own
        2 embed none ref.fa -o e.npz :: has no network
        2 eval none :: --fasta
        2 train ref.fa --init none --out r :: has no network
        2 checkpoint export none --out r :: has no network
        """, "", {"ref.fa": FRAME, "near.fa": FRAME}),
    "data check": Table("data check", """
        2  :: give one FILE
        2 a.fa - :: give one FILE
        2 a.fa b.fa :: b.fa
        2 a.fa --fasta b.fa :: needs no reference
        2 a.fa --domain rna :: rna
        """),
    "compare": Table("compare", """
        2  :: nothing to compare
        2 RUN :: one run cannot be compared
        2 RUN RUN :: given twice
        4 RUN nowhere :: nowhere: is not there
        """),
    "align": Table("align ref.fa --relatives near.fa", """
        2 far.fa -o a.paf :: names 2 genomes
        2 -o a.maf :: does not end in .paf
        2 -o a.paf --shard 1/2 :: does not end in .npy
        """, "", {name: FRAME for name in ("ref.fa", "near.fa", "far.fa")}),
    "scorecard": Table("scorecard", """
        3 ~ protein.fa --real real.fa :: line 2
        3 ~ good.fa --real protein.fa :: line 2
        3 ~ empty.fa --real real.fa :: empty
        3 ~ good.fa --real empty.fa :: empty
        3 ~ twice.fa --real real.fa :: duplicate
        3 ~ good.fa --real twice.fa :: duplicate
        3 good.fa --real real.fa --motifs protein.fa :: protein.fa
        3 none.fa --model RUN :: not there
        2 none.fa :: --model
        """, "--html p.html", {
            "protein.fa": ">a\nMFV\n", "empty.fa": "", "twice.fa": ">a\nA\n>a\nACGT\n",
            "real.fa": f">r\n{'ACGTTGCAAC' * 12}\n", "good.fa": ">a\nACGTACGT\n>b\nACGTTTTT\n",
        }),
}  # fmt: skip
